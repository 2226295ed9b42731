"""The selection of cases by pairs of values."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st
from pairwise import each_value, pairwise


def pairs_of(cases):
    return {pair for case in cases for pair in combinations(sorted(case.items()), 2)}


@given(st.lists(st.fixed_dictionaries({name: st.integers(0, 3) for name in "abcd"}), max_size=60))
def test_every_pair_is_in_a_case_that_is_kept(cases):
    kept = pairwise(cases)
    assert kept == sorted(set(kept))
    assert pairs_of([cases[place] for place in kept]) == pairs_of(cases)


def test_few_cases_have_all_pairs():
    cases = [dict(zip("abcd", values, strict=True)) for values in product(range(3), repeat=4)]
    assert 9 <= len(pairwise(cases)) <= 15  # of 81


def test_values_of_one_parameter_or_of_two_are_all_kept():
    assert pairwise([{"a": value} for value in (1, 2, 1, 3)]) == [0, 1, 3]
    assert pairwise([{"a": a, "b": b} for a in range(3) for b in "xy"]) == list(range(6))
    assert pairwise([]) == []


@given(st.lists(st.fixed_dictionaries({name: st.integers(0, 3) for name in "abc"}), max_size=60))
def test_each_value_is_in_a_case_that_is_kept(cases):
    kept = [cases[place] for place in each_value(cases)]
    assert {item for case in kept for item in case.items()} == {item for case in cases for item in case.items()}


def test_values_come_about_as_often_as_each_other():
    cases = [{"a": a, "b": b} for a in range(9) for b in "xyz"]
    kept = [cases[place]["b"] for place in each_value(cases)]
    assert sorted(kept) == sorted("xyz" * 3)

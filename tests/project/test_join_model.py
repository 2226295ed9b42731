"""The functions of joins, model-checked: every interleaving of a few threads, and broken variants that have to be caught."""

from __future__ import annotations

import pytest
from join_model.checker import explore
from join_model.scenarios import BROKEN, SCENARIOS


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_state_keeps_the_rules(name, record_property):
    outcome = explore(SCENARIOS[name])
    assert not outcome.broken, "\n".join(outcome.steps)
    assert outcome.states > 100
    assert outcome.ends > 0
    record_property("states", outcome.states)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_caught(name):
    rule = BROKEN[name]
    outcome = explore(SCENARIOS[rule.caught_in], rule.broken_by)
    assert rule.found
    assert rule.found in outcome.broken, "\n".join(outcome.steps)
    assert outcome.steps

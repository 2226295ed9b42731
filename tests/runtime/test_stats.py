"""What launches report: in words, as a dictionary, and added up."""

from __future__ import annotations

import dataclasses
import json
import sys

import numpy as np
import pytest

import atos_py as atos
from atos_py.compile.timing import Profile
from atos_py.runtime.stats import COUNTED, LaunchStats
from atos_py.runtime.trace import TRACE

ONE = LaunchStats(
    tasks_run=10, tasks_pushed=4, milliseconds=2.0, rounds=1, task="a", device="cpu", worker="warp", fetch_size=32,
    persistent=True, barrier=False, num_blocks=2, num_threads=1, num_workers=2,
    profile=Profile(compile=5.0, run=2.0),
)  # fmt: skip


def traced(**others):
    trace = np.array([(0.0, 1, 5, 0.0), (1.5, 9, 2, 0.5)], TRACE)
    return dataclasses.replace(ONE, trace=trace, **others)


def test_numbers_add_up_and_the_last_configuration_counts():
    other = dataclasses.replace(ONE, tasks_run=5, milliseconds=0.5, rounds=7, task="b", worker="cta")
    total = LaunchStats.total([ONE, other])
    assert (total.tasks_run, total.tasks_pushed, total.milliseconds, total.rounds) == (15, 8, 2.5, 8)
    assert (total.task, total.worker, total.fetch_size) == ("b", "cta", 32)
    assert total.trace is None
    assert total.profile == Profile(compile=10.0, run=4.0)
    assert LaunchStats.total([ONE, other], task="both").task == "both"
    first = LaunchStats.total([ONE, other], like=ONE)
    assert (first.task, first.worker, first.tasks_run) == ("a", "warp", 15)


def test_what_was_counted_adds_up():
    counted = dataclasses.replace(ONE, local_items=1, items_donated=2, items_split=3, chunks_donated=40_000)
    total = LaunchStats.total([counted, counted])
    assert [getattr(total, name) for name in COUNTED] == [2, 4, 6, 80_000]
    assert LaunchStats.total([counted, ONE]).local_items is None
    in_words = "1 items kept and 2 donated; 3 split, 40,000 chunks run by others"
    assert in_words in str(counted)
    assert in_words in counted._repr_html_()
    assert counted.to_dict()["items_split"] == 3


def test_none_have_no_total():
    with pytest.raises(atos.InvalidArgumentError, match="got none"):
        LaunchStats.total([])


def test_one_launch_is_its_own_total():
    assert LaunchStats.total([ONE]) == ONE


def test_traces_are_joined_where_launches_meet():
    first, last = traced(), traced(task="c")
    trace = LaunchStats.total([first, ONE, last]).trace
    assert trace["milliseconds"].tolist() == [0.0, 1.5, 4.0, 5.5]
    assert trace["tasks_run"].tolist() == [1, 9, 21, 29]
    assert trace["waiting"].tolist() == [5, 2, 5, 2]
    assert trace["idle"].tolist() == [0, 0.5, 0, 0.5]
    assert first.trace["milliseconds"].tolist() == last.trace["milliseconds"].tolist() == [0.0, 1.5]


def test_the_representation_is_a_line():
    assert repr(ONE) == (
        "<LaunchStats a: 10 tasks in 2.000 ms (5,000 tasks/s), persistent, relaxed, warp, on cpu;"
        " call 7.000 ms: compile 5.000, run 2.000>"
    )
    assert str(ONE).splitlines()[1:] == [
        "  persistent, relaxed; 1 round; 2 warp workers (2 x 1 threads), fetch size 32, on cpu",
        "  call 7.000 ms: compile 5.000, run 2.000",
    ]


@pytest.mark.parametrize(
    ("milliseconds", "rate"),
    [
        (0.0, ""),
        (1e9, " (0 tasks/s)"),
        (2.0, " (5,000 tasks/s)"),
        (0.01, " (1.00 million tasks/s)"),
        (0.0005, " (20.0 million tasks/s)"),
    ],
)
def test_how_fast_tasks_ran_is_said_in_a_unit_that_fits(milliseconds, rate):
    stats = dataclasses.replace(ONE, milliseconds=milliseconds)
    assert f"ms{rate}," in repr(stats)
    assert str(stats).splitlines()[0].endswith(f"ms{rate}")
    assert f"10{rate}<" in stats._repr_html_()
    assert "/s" not in str(dataclasses.replace(ONE, tasks_run=0))


def test_parts_of_the_time_say_what_they_are():
    every = Profile(compile=1.0, link=2.0, load=3.0, copy=4.0, launch=5.0, run=6.0)
    said = "call 21.000 ms: compile 1.000, link 2.000, load code 3.000, copy counters 4.000, start 5.000, run 6.000"
    assert str(every) == said


def test_statistics_with_traces_compare():
    assert traced() == traced()
    assert traced() != traced(tasks_run=1)


def test_a_notebook_gets_a_table_in_which_nothing_is_markup():
    text = dataclasses.replace(traced(), task="<b>")._repr_html_()
    assert text.startswith("<table>")
    assert text.count("<tr>") == text.count("</tr>") == 9
    assert "&lt;b&gt;" in text
    assert "2 samples" in text
    assert "<b>" not in text


def test_the_dictionary_goes_through_json():
    unknown = traced()
    unknown.trace["idle"][0] = np.nan
    fields = json.loads(json.dumps(unknown.to_dict(), allow_nan=False))
    assert fields["trace"] == {"milliseconds": [0.0, 1.5], "tasks_run": [1, 9], "waiting": [5, 2], "idle": [None, 0.5]}
    assert fields["profile"]["compile"] == 5.0
    assert fields["tasks_run"] == 10
    assert ONE.to_dict()["trace"] is None
    assert unknown.trace.dtype == TRACE


class TestPlot:
    def test_every_panel_has_what_the_trace_says(self):
        pytest.importorskip("matplotlib")
        rate, queue, idle, parts = traced().plot(least_tasks=5).axes
        absolute, normalized = (line.get_ydata() for line in rate.lines)
        assert np.allclose(absolute, 2 * normalized)  # 10 tasks for 5
        assert queue.get_ylim()[1] >= 5
        assert idle.collections[0].get_paths()[0].vertices[:, 1].max() == 50
        assert [text.get_text() for text in parts.get_legend().get_texts()] == ["compile 5.00", "run 2.00"]

    def test_what_is_not_known_is_said(self):
        pytest.importorskip("matplotlib")
        stats = traced()
        stats.trace["idle"] = np.nan
        assert "not known" in stats.plot().axes[2].texts[0].get_text()

    def test_it_becomes_a_picture(self, tmp_path):
        pytest.importorskip("matplotlib")
        graph = atos.generate.road(100, device="cpu")
        atos.bfs(graph, 5050, trace=20).stats.plot(graph.num_vertices).savefig(tmp_path / "run.png")
        assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")

    @pytest.mark.parametrize("samples", [None, 0, 1])
    def test_without_a_trace(self, samples):
        pytest.importorskip("matplotlib")
        trace = None if samples is None else traced().trace[:samples]
        with pytest.raises(atos.InvalidArgumentError, match="trace=20"):
            dataclasses.replace(ONE, trace=trace).plot()

    @pytest.mark.parametrize("bad", [0, -3])
    def test_the_least_number_of_tasks_is_one(self, bad):
        pytest.importorskip("matplotlib")
        with pytest.raises(atos.InvalidArgumentError, match=f"least_tasks must be .*got {bad}"):
            traced().plot(bad)

    def test_without_matplotlib(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "atos_py.runtime.plot", None)
        with pytest.raises(atos.MissingPackageError, match="pip install matplotlib"):
            traced().plot()

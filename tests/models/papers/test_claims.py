"""Claims of papers against invented measurements: each verdict, the runs that claims name, runs in turns, and the report."""

from __future__ import annotations

import numpy as np
import pytest
from written_files import rows

import atos_py as atos
from atos_py.models.papers import claim_report, claims_atos, claims_onyx, claims_simdx, claims_worklists, reproduce, turns
from atos_py.models.papers import reproduce_onyx as onyx
from atos_py.models.papers import reproduce_simdx as simdx
from atos_py.models.papers import reproduce_worklists as worklists
from atos_py.models.papers.claims import LEAST_PAIRS, Claim, Number, judge, kind_of_graph, names_of_runs
from atos_py.models.papers.onyx_algorithms import inputs_of
from atos_py.models.papers.subjects import default_specs, make_graphs

PAPERS = {"atos": claims_atos, "simd-x": claims_simdx, "onyx": claims_onyx, "worklists": claims_worklists}
LEAST = {"atos": 12, "simd-x": 12, "onyx": 10, "worklists": 12}
EVERY = [pytest.param(claim, id=f"{paper}-{claim.key}") for paper, module in PAPERS.items() for claim in module.CLAIMS]
TESTED = [parameter for parameter in EVERY if parameter.values[0].over is not None]


def invent(claim: Claim, ratios: list[float]) -> dict[str, list[dict[str, float]]]:
    """Return numbers of the runs that a claim needs, whose ratios are these in turn."""
    assert claim.over is not None
    below = [2.0 + turn / 7 for turn in range(len(ratios))] if claim.under else [1.0] * len(ratios)
    runs: dict[str, list[dict[str, float]]] = {run: [{} for _ in ratios] for run in names_of_runs([claim], claim.devices[0])}
    for run in claim.under.runs if claim.under else ():
        for turn, number in enumerate(below):
            runs[run][turn][claim.under.name] = number
    for run in claim.effect.runs if claim.effect else ():
        for numbers in runs[run]:
            numbers[claim.effect.name] = 1
    for place, run in enumerate(claim.over.runs):  # of several runs the first is the one that counts
        for turn, ratio in enumerate(ratios):
            runs[run][turn][claim.over.name] = ratio * below[turn] * (1 + place)
    return runs


def verdict(claim: Claim, ratios: list[float], **options) -> str:
    found = judge(claim, "graph", claim.graphs[0], claim.devices[0], invent(claim, ratios), **options)
    assert found is not None
    return found.verdict


@pytest.mark.parametrize("claim", TESTED)
def test_each_verdict_of_each_claim(claim):
    sign = 1 if claim.test[0] == ">" else -1
    spread = np.linspace(0.9, 1.1, LEAST_PAIRS)
    right = (claim.threshold + sign * spread * 0.05).tolist()
    wrong = (claim.threshold - sign * spread * 0.05).tolist()
    if claim.over == claim.under or claim.over.runs == (claim.under.runs if claim.under else ()):
        assert claim.over.name != claim.under.name  # two numbers of one run
    assert verdict(claim, right) == "holds"
    assert verdict(claim, wrong) == "turned"
    assert verdict(claim, [*right[:5], *wrong[:5]]) == "not decided"
    assert verdict(claim, right[:-1]) == "not decided"
    assert verdict(claim, right, refusals={claim.over.runs[0]: "They were refused."}) == "not decided"
    runs = invent(claim, right) | {claim.over.runs[0]: []}
    assert judge(claim, "graph", claim.graphs[0], claim.devices[0], runs).verdict == "not decided"
    if claim.effect is not None:
        runs = invent(claim, right)
        for numbers in runs[claim.effect.runs[0]]:
            numbers[claim.effect.name] = 0
        found = judge(claim, "graph", claim.graphs[0], claim.devices[0], runs)
        assert (found.verdict, found.reason) == ("not decided", claim.no_effect)
    exact = [claim.threshold] * LEAST_PAIRS
    assert verdict(claim, exact) == ("holds" if claim.test in (">=", "<=") else "not decided")


@pytest.mark.parametrize("claim", EVERY)
def test_what_is_not_applicable(claim):
    assert claim.says.endswith(".")
    assert claim.says[0].isupper()
    for device in ("cpu", "cuda"):
        is_applicable = claim.over is not None and device in claim.devices
        found = judge(claim, "graph", claim.graphs[0], device, {})
        assert found.verdict == ("not decided" if is_applicable else "not applicable")
        assert found.reason.endswith(".")
        assert np.isnan(found.ratio)
    other = {"scale-free", "mesh-like"} - set(claim.graphs)
    if other and claim.over is not None:
        assert judge(claim, "graph", other.pop(), claim.devices[0], {}) is None


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_of_a_paper(paper):
    claims = PAPERS[paper].CLAIMS
    assert len(claims) >= LEAST[paper]
    assert len({claim.key for claim in claims}) == len(claims)
    assert sum("cpu" in claim.devices and claim.over is not None for claim in claims) >= LEAST[paper]


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_name_runs_that_are_made(paper):
    named = names_of_runs(PAPERS[paper].CLAIMS, "cpu") | names_of_runs(PAPERS[paper].CLAIMS, "cuda")
    measures = {"simd-x": simdx.MEASURES, "worklists": worklists.MEASURES}
    if paper == "atos":
        made = {
            f"{algorithm}/{variant}"
            for algorithm in [*reproduce.list_runs(), "coloring permuted"]
            for variant in reproduce.VARIANTS
        }
    elif paper == "onyx":
        graph = atos.generate.road(3, device="cpu")
        made = {run for runs in onyx._families(graph, inputs_of(graph), {}).values() for run in runs}
        made |= {f"counted {onyx._COUNTED} {mode}" for mode in onyx.MODES}
    else:
        made = {
            f"{name}/{program}/{variant}"
            for name, each in measures[paper].items()
            for program in each.programs
            for variant in each.variants
        }
    assert named <= made


@pytest.mark.parametrize("paper", PAPERS)
def test_claims_name_numbers_that_runs_have(paper):
    known = set(turns.numbers_of(atos.bfs(atos.generate.road(3, device="cpu"), 0).stats))
    known |= {
        "workload",
        "vertices",
        "widest",
        "ballots",
        "sweeps",
        "edge_operations",
        "atomic_transactions",
        "load_efficiency",
    }
    for claim in PAPERS[paper].CLAIMS:
        assert all(number.name in known for number in (claim.over, claim.under, claim.effect) if number is not None)


def test_of_several_runs_the_fastest_counts():
    claim = Claim(key="k", place="p", says="S.", compared="c", over=Number.of("A", "B"), under=Number.of("C"))
    runs = {name: [{"milliseconds": number}] * 10 for name, number in {"A": 9.0, "B": 6.0, "C": 2.0}.items()}
    found = judge(claim, "road", "mesh-like", "cpu", runs)
    assert (found.ratio, found.low, found.high, found.pairs, found.verdict) == (3, 3, 3, 10, "holds")
    assert found.measured == "6.00 (6.00 to 6.00) over 2.00 (2.00 to 2.00) = 3 (3 to 3)"
    runs["C"] = [{"milliseconds": 0.0}] * 10
    assert judge(claim, "road", "mesh-like", "cpu", runs).reason == "A number under the line is 0."
    runs["C"] = [{"milliseconds": None}] * 10
    assert judge(claim, "road", "mesh-like", "cpu", runs).reason == "A run that the claim needs has no such number."


def test_the_interval_has_a_fixed_seed_and_holds_the_median():
    claim = Claim(key="k", place="p", says="S.", compared="c", over=Number.of("A"), under=Number.of("B"))
    rng = np.random.default_rng(1)
    runs = {name: [{"milliseconds": float(number)} for number in rng.lognormal(size=12)] for name in "AB"}
    first, again = (judge(claim, "road", "mesh-like", "cpu", runs) for _ in range(2))
    assert first == again
    assert first.low < first.ratio < first.high
    assert first.verdict == "not decided"


def test_kinds_of_graphs():
    for device in (atos.device("cpu"),):
        for paper in PAPERS:
            specs = default_specs(paper, device, True)
            assert [spec.partition(":")[0] for spec in specs] == ["rmat", "road"]
    small = make_graphs(("rmat:8", "road:20"), atos.device("cpu"))
    assert [turns.GraphFacts.of(name, graph).kind for name, graph in small] == ["scale-free", "mesh-like"]
    assert kind_of_graph(np.zeros(3, int)) == "mesh-like"


def test_runs_in_turns():
    log: list[str] = []
    families = {"f": {name: (lambda name=name: log.append(name) or len(log)) for name in "abc"}, "g": {"d": lambda: 0}}
    seen = []

    def progress(steps, description, total):
        seen.append((description, total))
        return steps

    results = turns.run_in_turns(families, 4, progress, "road")
    assert seen == [("road", 20)]
    assert len(log) == 15
    assert all(sorted(log[turn * 3 : turn * 3 + 3]) == ["a", "b", "c"] for turn in range(5))
    assert len({tuple(log[turn * 3 : turn * 3 + 3]) for turn in range(5)}) > 1  # in other orders
    assert {key: len(values) for key, values in results.items()} == {("f", "a"): 4, ("f", "b"): 4, ("f", "c"): 4, ("g", "d"): 4}
    assert min(results["f", "a"] + results["f", "b"] + results["f", "c"]) > 3  # the first turn warms up


def test_a_report(tmp_path):
    claims = [
        Claim(key="faster", place="Table 1", says="A | B.", compared="A over B", over=Number.of("A"), under=Number.of("B")),
        Claim(key="few", place="Table 2", says="Few.", compared="tasks of A", over=Number.of("A", name="tasks_run"), test="<"),
        Claim(
            key="of-gpu", place="Table 3", says="G.", compared="c", over=Number.of("A"), devices=("cuda",), because="A GPU's."
        ),
        Claim(key="scale-free", place="Table 4", says="S.", compared="c", over=Number.of("A"), graphs=("scale-free",)),
    ]
    runs = {"A": [{"milliseconds": 4.0, "tasks_run": 7}] * 10, "B": [{"milliseconds": 2.0}] * 10}
    facts = turns.GraphFacts("road20", "mesh-like", 400, 900)
    measured = [turns.Samples(facts, runs, {}), turns.Samples(facts._replace(name="road30"), runs, {})]
    findings = claim_report.judge_all(claims, "cpu", measured)
    verdicts = ["holds", "holds", "turned", "turned", "not applicable", "not decided"]
    assert [found.verdict for found in findings] == verdicts
    assert claim_report.summarize(findings) == "4 claims, 6 findings: 2 holds, 2 turned, 1 not decided, 1 not applicable."
    device = atos.device("cpu")
    files = claim_report.write_report(tmp_path, "toy", "Claims", "atos reproduce", device, measured, findings)
    assert [path.name for path in files] == ["toy.md", "toy-claims.csv", "toy-runs.csv"]
    page = files[0].read_text()
    assert f"numpy {np.__version__}" in page
    assert "A over B: 4.00 (4.00 to 4.00) over 2.00 (2.00 to 2.00) = 2 (2 to 2), 10 pairs | **holds** |" in page
    assert "| A \\| B. |" in page
    table = rows(files[1])
    assert [row["verdict"] for row in table] == verdicts
    assert (table[0]["ratio"], table[0]["over_median"], table[2]["under_median"]) == ("2.0", "4.0", "")
    samples = rows(files[2])
    assert len(samples) == 40
    assert (samples[0]["tasks_run"], samples[10]["tasks_run"]) == ("7", "")
    with pytest.raises(atos.FileWriteError, match="cannot write into"):
        claim_report.write_report(tmp_path / "nothing", "toy", "Claims", "atos reproduce", device, measured, findings)


def test_nothing_is_said_of_a_finding_without_runs(tmp_path):
    claims = [claim for claim in claims_atos.CLAIMS if claim.over is None]
    findings = claim_report.judge_all(claims, "cpu", [turns.Samples(turns.GraphFacts("g", "mesh-like", 1, 0), {}, {})])
    assert [(found.verdict, found.measured) for found in findings] == [("not applicable", "nothing")] * len(claims)
    files = claim_report.write_report(tmp_path, "atos", "Claims", "c", atos.device("cpu"), [], findings)
    assert [path.name for path in files] == ["atos.md", "atos-claims.csv"]

"""The numbers of scenarios and of broken rules of the model, on the pages that tell them."""

from __future__ import annotations

from model.rules import BROKEN
from model.scenarios import SCENARIOS
from repository import ROOT


def test_the_pages_say_how_many_scenarios_and_broken_rules_the_model_has():
    pages = {page: " ".join((ROOT / "docs" / page).read_text().split()) for page in ("protocol/model.md", "trust.md")}
    assert f"There are {len(SCENARIOS)} scenarios" in pages["protocol/model.md"]
    assert f"The {len(BROKEN)} rules in" in pages["protocol/model.md"]
    assert f"in {len(SCENARIOS)} scenarios" in pages["trust.md"]
    assert f"checks {len(BROKEN)} variants" in pages["trust.md"]

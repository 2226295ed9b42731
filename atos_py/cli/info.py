"""Command ``info``: devices and compilers that are there, what is missing, and how to get it."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from .options import add_json, check_outputs, say, write_json

HELP = "say what is there and what is missing"
DESCRIPTION = """\
Says which devices, compilers and packages there are, what the core was built for, where compiled tasks are kept, and for each
thing that is missing the command that mends it. Nothing is changed. The same as no command at all."""
EXAMPLES = """\
  atos info
  atos info --json -        for programs"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command to `argparse`."""
    add_json(parser)


def command(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    check_outputs(options.json)
    from ..tools.diagnosis import diagnose, format_report

    findings = diagnose()
    say(options, format_report(findings))
    write_json(options, {"findings": [asdict(finding) for finding in findings]})
    return 0

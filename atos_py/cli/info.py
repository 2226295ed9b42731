"""Command ``info``: devices and compilers that are there, what is missing, and how to get it."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from .options import add_json, check_outputs, say, write_json

HELP = "list devices, compilers and packages, and what is missing"
DESCRIPTION = """\
Lists the devices, compilers and packages of this machine, the architectures that the core was built for, and the cache of
compiled tasks. For each part that is missing it prints a command that installs it. It changes nothing. `info` is the default
command."""
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

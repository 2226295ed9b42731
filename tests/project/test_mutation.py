"""The faults in tests/mutation, which run.py tries: here only that they still are faults of the core as it is."""

from __future__ import annotations

from model.source import CSRC
from mutation.mutants import GPU, MUTANTS, RARE, SAME


def test_every_fault_fits_the_sources():
    sources = {str(file.relative_to(CSRC)): file.read_text() for file in CSRC.rglob("*") if file.is_file()}
    times = {name: sources[mutant.file].count(mutant.old) for name, mutant in MUTANTS.items()}
    assert [name for name in times if times[name] != 1] == []


def test_every_fault_is_one_and_has_no_reason_but_a_good_one():
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS.values()}) == len(MUTANTS) > 200
    assert [name for name, mutant in MUTANTS.items() if mutant.old == mutant.new] == []
    assert [name for name, mutant in MUTANTS.items() if not (mutant.survives + SAME).startswith((GPU, RARE, SAME))] == []


def test_there_are_faults_in_every_part_of_the_protocol():
    protocol = {file.name for file in (CSRC / "protocol").iterdir()} - {
        "kernel_params.h",
        "queue_addresses.h",
        "tuning.h",
        "link_constants.cuh",
    }
    layers = "push_buffer", "termination", "host_report", "bsp_rounds", "load_balance", "work_sharing"
    device = {
        f"{name}.cuh" for name in ("group", "group_worker", "thread_worker", "worker_state", "inbox", "far_work", *layers)
    }
    host = {
        f"host/{name}"
        for name in ("kinds.cpp", "launch.cpp", "queue.cpp", "queue_storage.cpp", "recovery.cpp", "in_place_recovery.h")
    }
    host |= {"host/fork_safe_mutex.h", "host/kept_ranges.h", "host/stop_monitor.h", "host/inbox.cpp", "host/prioritized.cpp"}
    host |= {"host/receivers.cpp", "host/peers.cpp", "host/process_group.cpp", "host/far_memory.cpp"}
    host |= {"host/spill_area.cpp"}
    cpu = {
        f"cpu/{name}"
        for name in (
            "backend.cpp",
            "memory.cpp",
            "scratch.h",
            "worker.h",
            "thread_pool.h",
            "time_limit.h",
            "launch_thread.h",
            "peer_pushes.h",
            "shared_range.cpp",
            "team.cpp",
            "program.h",
        )
    }
    shared = {f"protocol/{name}" for name in protocol} | {f"device/{name}" for name in device}
    assert {mutant.file for mutant in MUTANTS.values()} == shared | host | cpu

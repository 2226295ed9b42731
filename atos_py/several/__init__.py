"""A room for several: the forms of algorithms for a graph whose parts lie on several devices or hosts.

For example, `atos.bfs(graph.partition(2), 0)` runs `on_devices.bfs`. A program that gives algorithms a `Graph` never loads this
package. The frame of algorithms (`algorithms.frame`) loads it when an algorithm is first given another type, and asks the
registry (`algorithms.forms`) for the form of that type, which `on_devices` and `on_hosts` have put there.
"""

from . import on_devices, on_hosts  # noqa: F401 - each registers its forms

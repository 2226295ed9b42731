"""Draw the landing page's figure, `_static/diagrams/results.svg`, from the table of BFS times in performance.md.

``python docs/draw_results.py`` writes it; a test fails when it is older than the table.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent
FIGURE = DOCS / "_static" / "diagrams" / "results.svg"
GRAPHS = {
    "rmat22": "R-MAT graph: 4.2 M vertices, 128 M edges, 5 levels",
    "road4900": "Road-like graph: 24 M vertices, 60 M edges, 4,953 levels",
}
NAMES = {
    "by default": "atos_py",
    'direction="push"': "atos_py, push only",
    "persistent CTA": "original Atos, persistent",
    "discrete CTA": "original Atos, discrete",
    "persistent warp": "",  # slower than the two above, and wrong on one of the graphs
}
WIDTH, LEFT, ROW, BAR = 600, 200, 25, 310


def table() -> list[tuple[str, list[str]]]:
    """Return each program of the table with its milliseconds on each of `GRAPHS`, "" where there is no number."""
    section = (DOCS / "performance.md").read_text().split("## BFS against others")[1].split("\n## ")[0]
    rows = []
    for line in section.splitlines():
        cells = [cell.strip(" *") for cell in line.split("|")[1:-1]]
        times = [cell if re.fullmatch(r"[\d.]+", cell) else "" for cell in cells[1:]]
        label = next((name for part, name in NAMES.items() if part in line), re.sub(r" \(.*", "", "".join(cells[:1])))
        if label and any(times):
            rows.append((label, times))
    return rows


def drawing() -> str:
    """Return the figure as SVG, in the colors of the hand-written drawings beside it."""
    style = re.search("<style>.*?</style>", (FIGURE.parent / "scheduler.svg").read_text(), re.DOTALL)
    assert style is not None
    body, y = [], 22
    for column, title in enumerate(GRAPHS.values()):
        rows = [(label, times[column]) for label, times in table() if times[column]]
        most = max(float(time) for _, time in rows)
        body.append(f'<text class="bold" x="4" y="{y}">{title}</text>')
        y += 12
        for label, time in sorted(rows, key=lambda row: float(row[1])):
            length = max(BAR * float(time) / most, 2)
            ours = label.startswith("atos_py")
            body.append(f'<text class="{"bold end" if ours else "end"}" x="{LEFT - 8}" y="{y + 16}">{label}</text>')
            bar = f'x="{LEFT}" y="{y + 2}" width="{length:.1f}" height="{ROW - 6}" rx="2"'
            body.append(f'<rect class="{"full" if ours else "box"}" {bar}/>')
            body.append(f'<text x="{LEFT + length + 8:.1f}" y="{y + 16}">{time} ms</text>')
            y += ROW
        y += 34
    note = "BFS, kernel time on one H100; shorter is better. Each panel has its own scale."
    body.append(f'<text class="small" x="4" y="{y - 20}">{note}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="atos" viewBox="0 0 {WIDTH} {y - 10}" role="img">'
    title = "<title>Kernel time of breadth-first search by atos_py, Gunrock, the original Atos and SIMD-X</title>"
    return "\n".join([head, title, style[0], *body, "</svg>", ""])


if __name__ == "__main__":
    FIGURE.write_text(drawing())

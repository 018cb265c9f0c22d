"""Bars in groups as SVG. No more than the benchmarks need."""
import math
from html import escape

COLOURS = {"libmtrace": "#1f6feb", "LeakSanitizer": "#8b949e", "heaptrack": "#d9822b"}
INK, SOFT, GRID = "#24292f", "#57606a", "#d8dee4"


class Picture:
    def __init__(self, width, height, title):
        self.width, self.height = width, height
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
        self.text(16, 24, title, size=15, weight="bold")

    def text(self, x, y, words, anchor="start", colour=INK, size=12, weight="normal"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
                          f'font-size="{size}" font-weight="{weight}">{escape(words)}</text>')

    def line(self, x1, y1, x2, y2, colour=GRID, width=1.0):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'stroke="{colour}" stroke-width="{width}"/>')

    def box(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
                          f'height="{height:.1f}" fill="{colour}"/>')

    def legend(self, names, colour_of, y):
        x = self.width - 16
        for name in reversed(names):
            x -= 7 * len(name)
            self.text(x, y, name, colour=SOFT)
            x -= 16
            self.box(x, y - 9, 10, 10, colour_of(name))
            x -= 16

    def finish(self):
        return "\n".join(self.parts) + "\n</svg>\n"


def label(value):
    if value >= 1_000_000:
        return f"{value / 1e6:g} M"
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value == int(value) else f"{value:g}"


def nice_steps(least, most, wanted=6):
    """Round values between the two."""
    rough = (most - least) / wanted
    power = 10 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough)
    first = math.ceil(least / step - 1e-9)
    return [i * step for i in range(first, math.floor(most / step + 1e-9) + 1)]


def bars(title, groups, names, unit, least=0.0, clip=None):
    """groups: (label, {name: value or None}); None: it did not survive. Values beyond `clip` are
    cut, their number stands beside the bar."""
    left, right, top, thick, gap = 170, 60, 52, 13, 12
    height = top + len(groups) * (len(names) * thick + gap) + 40
    picture = Picture(820, height, title)
    picture.legend(names, lambda name: COLOURS[name], 24)
    values = [v for _, each in groups for v in each.values() if v is not None]
    most = max(values + [least + 1e-9])
    most = min(most, clip) if clip else most
    scale = (picture.width - left - right) / (most - least)
    bottom = height - 34
    for step in nice_steps(least, most):
        x = left + (step - least) * scale
        picture.line(x, top - 6, x, bottom)
        picture.text(x, bottom + 16, label(step), "middle", SOFT)
    y = top
    for name, each in groups:
        picture.text(left - 10, y + len(names) * thick / 2 + 4, name, "end")
        for tool in names:
            value = each.get(tool)
            if value is None:
                picture.text(left + 4, y + thick - 3, "fails" if tool in each else "", colour=SOFT,
                             size=10)
            else:
                width = (min(value, most) - least) * scale
                picture.box(left, y + 1, width, thick - 2, COLOURS[tool])
                words = f"{value:.2f}" if unit == "ratio" else f"{value:,.0f}"
                picture.text(left + max(width, 0) + 5, y + thick - 3, words, colour=SOFT, size=10)
            y += thick
        y += gap
    picture.line(left, top - 6, left, bottom, SOFT)
    picture.text(picture.width - 16, height - 4, unit if unit != "ratio" else "times base", "end",
                 SOFT)
    return picture.finish()

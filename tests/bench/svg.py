"""Two kinds of pictures as SVG: bars in groups and lines. No more than the benchmarks need."""
import math
from html import escape

COLOURS = {"libmtrace": "#1f6feb", "LeakSanitizer": "#8b949e", "heaptrack": "#d9822b",
           "base": "#57606a"}
PALETTE = ["#1f6feb", "#d9822b", "#2da44e", "#8250df", "#8b949e"]
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


def lines(title, panels):
    """panels: (title, label of x, label of y, log x, log y, {name: [(x, y)]})."""
    each, gap, left, top, tall = 380, 40, 64, 84, 220
    width = 16 + len(panels) * (each + gap)
    picture = Picture(width, top + tall + 56, title)
    for number, (name, x_label, y_label, log_x, log_y, series) in enumerate(panels):
        x0 = left + number * (each + gap)
        wide = each - left + 20
        draw_panel(picture, (x0, top, wide, tall), (name, x_label, y_label), (log_x, log_y), series)
    return picture.finish()


def draw_panel(picture, place, labels, logs, series):
    x0, top, wide, tall = place
    points = [point for each in series.values() for point in each]
    if not points:
        return

    def range_of(axis):
        values = [point[axis] for point in points]
        least, most = min(values), max(values)
        if logs[axis]:
            return math.floor(math.log10(least) + 1e-9), math.ceil(math.log10(most) - 1e-9) or 1
        return 0.0, most * 1.05

    ranges = [range_of(0), range_of(1)]

    def at(axis, value):
        least, most = ranges[axis]
        value = math.log10(value) if logs[axis] else value
        part = (value - least) / ((most - least) or 1)
        return x0 + part * wide if axis == 0 else top + tall - part * tall

    def steps(axis):
        least, most = ranges[axis]
        if logs[axis]:
            return [10.0 ** power for power in range(int(least), int(most) + 1)]
        return nice_steps(least, most, 5)

    picture.text(x0, top - 34, labels[0], weight="bold")
    for step in steps(0):
        picture.line(at(0, step), top, at(0, step), top + tall)
        picture.text(at(0, step), top + tall + 16, label(step), "middle", SOFT, 11)
    for step in steps(1):
        picture.line(x0, at(1, step), x0 + wide, at(1, step))
        picture.text(x0 - 6, at(1, step) + 4, label(step), "end", SOFT, 11)
    picture.text(x0 + wide, top + tall + 34, labels[1], "end", SOFT)
    picture.text(x0, top - 18, labels[2], "start", SOFT)
    ends = []
    for number, (name, each) in enumerate(series.items()):
        colour = COLOURS.get(name, PALETTE[number % len(PALETTE)])
        path = " ".join(f"{at(0, x):.1f},{at(1, y):.1f}" for x, y in each)
        picture.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                             f'stroke-width="2"/>')
        for x, y in each:
            picture.parts.append(f'<circle cx="{at(0, x):.1f}" cy="{at(1, y):.1f}" r="3" '
                                 f'fill="{colour}"/>')
        ends.append((at(1, each[-1][1]), name, colour))
    # Names at the right ends, below one another where they would touch.
    last = -100.0
    for y, name, colour in sorted(ends):
        last = max(y - 6, last + 13)
        picture.text(x0 + wide - 4, last, name, "end", colour, 11, "bold")

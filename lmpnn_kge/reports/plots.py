"""Plots as SVG: the same bytes for the same numbers, legible on light and dark backgrounds."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmpnn_kge.errors import LmpnnError, one_line, short
from lmpnn_kge.work.deadline import check_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from lmpnn_kge.methods.calibration import Reliability

#: Colours that the colour-blind can distinguish (Okabe and Ito), on light and on dark.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c")

#: Replaced by the colour of the text around a plot.
INK = "#1f2328"
INK_ON_DARK = "#e6edf3"

DASHES: tuple[Any, ...] = ("-", (0, (4, 2)), (0, (1, 1.5)))

MARKS = ("D", "x", "o", "+", "s", "^")

WIDTH = 9.0  # inches

Values = Mapping[str, float]  # fractions by query type


@dataclass(frozen=True)
class Curve:
    """The training of one run: loss and validation by epoch."""

    name: str
    loss: Mapping[int, float]
    valid: Mapping[str, Mapping[int, float]] = field(default_factory=dict)  # A_P, A_N as fractions
    best: int | None = None  # the epoch that was kept


def plot_curves(curves: Sequence[Curve]) -> str:
    """Loss on the left, validation on the right if there is any."""
    validated = any(curve.valid for curve in curves)
    with _plotting():
        figure = _figure(3.2)
        panels = figure.subplots(1, 2 if validated else 1, squeeze=False)[0]
        panels[0].set(xlabel="epoch", ylabel="training loss")
        for number, curve in enumerate(curves):
            _line(panels[0], curve.loss, _colour(number), "-", _label(curve.name))
        handles, labels = panels[0].get_legend_handles_labels()
        if validated:
            panels[1].set(xlabel="epoch", ylabel="MRR on valid, percent")
            lines = _valid_curves(panels[1], curves)
            handles, labels = [*handles, *lines], [*labels, *(str(li.get_label()) for li in lines)]
        for panel in panels:
            panel.locator_params(axis="x", integer=True)
        if len(labels) > 1:
            _legend(figure, handles, labels)
        return _svg(figure)


def _valid_curves(axes: Axes, curves: Sequence[Curve]) -> list[Line2D]:
    """Draw lines in the colour of their run and the dashes of their average.

    Returns a legend of the dashes; the colours are in the legend of the losses.
    """
    from matplotlib.lines import Line2D

    names = dict.fromkeys(name for curve in curves for name in curve.valid)
    dashes = {name: DASHES[number % len(DASHES)] for number, name in enumerate(names)}
    for number, curve in enumerate(curves):
        for name, values in curve.valid.items():
            shown = {epoch: 100 * value for epoch, value in values.items()}
            _line(axes, shown, _colour(number), dashes[name])
            if curve.best in shown:
                axes.plot([curve.best], [shown[curve.best]], "o", color=_colour(number))
    axes.set_ylim(bottom=0)
    return [Line2D([], [], color=INK, linestyle=dashes[name], label=name) for name in names]


def plot_trials(values: Sequence[tuple[float, bool]], default: float) -> str:
    """The mean MRR of every trial on valid, whether it was stopped early, and the best so far."""
    with _plotting():
        figure = _figure(3.2)
        axes = figure.subplots()
        axes.set(xlabel="trial", ylabel="mean MRR on valid, percent")
        complete = {n: 100 * v for n, (v, pruned) in enumerate(values, 1) if not pruned}
        pruned = {n: 100 * v for n, (v, stopped) in enumerate(values, 1) if stopped}
        axes.plot([*complete], [*complete.values()], "o", color=_colour(0), label="trial")
        if pruned:
            axes.plot([*pruned], [*pruned.values()], "x", color=_colour(6), label="stopped early")
        best = 100 * default
        steps = []
        for number in range(1, len(values) + 1):
            best = max(best, complete.get(number, best))
            steps.append(best)
        axes.step(range(1, len(values) + 1), steps, where="post", color=_colour(0), label="best")
        axes.axhline(100 * default, color=INK, linestyle=DASHES[1], label="to begin with")
        axes.locator_params(axis="x", integer=True)
        _legend(figure, *axes.get_legend_handles_labels())
        return _svg(figure)


def plot_types(
    types: Sequence[str], rows: Mapping[str, Values], marks: Mapping[str, Values] | None = None
) -> str:
    """For every type a bar of MRR for each row; marks are drawn over the bars."""
    with _plotting():
        figure = _figure(3.4, len(types) * (len(rows) + 1))
        axes = figure.subplots()
        _bars(axes, types, rows)
        bars, names = axes.get_legend_handles_labels()
        for number, (name, values) in enumerate((marks or {}).items()):
            having = [x for x, type_ in enumerate(types) if type_ in values]
            bars += axes.plot(
                having,
                [100 * values[types[x]] for x in having],
                linestyle="none",
                marker=MARKS[number % len(MARKS)],
                markersize=7,
                markeredgewidth=1.4,
                markerfacecolor="none",
                color=INK,
            )
            names.append(_label(name))
        axes.set(ylabel="MRR, percent")
        _legend(figure, bars, names)
        return _svg(figure)


def plot_missing(types: Sequence[str], panels: Mapping[str, Mapping[str, Values]]) -> str:
    """A panel for every run, with a bar for every number of missing edges."""
    with _plotting():
        bars = len(types) * (len(next(iter(panels.values()))) + 1)
        figure = _figure(0.8 + 1.7 * len(panels), bars)
        columns = figure.subplots(len(panels), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
        for axes, (name, rows) in zip(columns, panels.items(), strict=True):
            _bars(axes, types, rows)
            axes.set_title(_label(name), loc="left", fontsize=9)
            axes.set(ylabel="MRR, percent")
        _legend(figure, *columns[0].get_legend_handles_labels())
        return _svg(figure)


def plot_reliability(rows: Mapping[str, Reliability]) -> str:
    """A reliability diagram: what holds by its probability on the left, how many on the right."""
    with _plotting():
        figure = _figure(3.4)
        diagram, counts = figure.subplots(1, 2)
        diagram.plot([0, 100], [0, 100], color=INK, linestyle=DASHES[2], label="perfect")
        for number, (name, reliability) in enumerate(rows.items()):
            bins = reliability.bins
            label = f"{_label(name)}, error {100 * reliability.error:.1f} %"
            shown = {100 * bin_.probability: 100 * bin_.share for bin_ in bins}
            _line(diagram, shown, _colour(number), "-", label)
            sizes = {100 * bin_.probability: bin_.count for bin_ in bins}
            _line(counts, sizes, _colour(number), "-")
        limits = (-3, 103)
        diagram.set(xlabel="probability, percent", ylabel="hold, percent", xlim=limits, ylim=limits)
        counts.set(xlabel="probability, percent", ylabel="number", xlim=limits, yscale="log")
        counts.yaxis.set_major_formatter("{x:,.0f}")  # the default is a formula, which is not drawn
        counts.yaxis.set_minor_formatter("")
        _legend(figure, *diagram.get_legend_handles_labels())
        return _svg(figure)


def _bars(axes: Axes, types: Sequence[str], rows: Mapping[str, Values]) -> None:
    width = 0.8 / max(1, len(rows))
    for number, (name, values) in enumerate(rows.items()):
        shift = (number - (len(rows) - 1) / 2) * width
        having = [x for x, type_ in enumerate(types) if type_ in values]
        heights = [100 * values[types[x]] for x in having]
        axes.bar(
            [x + shift for x in having],
            heights,
            width * 0.92,
            color=_colour(number),
            label=_label(name),
        )
    turned: dict[str, Any] = {"rotation": 35, "ha": "right"} if max(map(len, types)) > 4 else {}
    axes.set_xticks(range(len(types)), [_label(type_, 16) for type_ in types], **turned)
    axes.set_xlim(-0.6, len(types) - 0.4)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)


def _line(
    axes: Axes,
    values: Mapping[int, float] | Mapping[float, float],
    colour: str,
    style: Any,
    label: str | None = None,
) -> None:
    axes.plot(
        list(values),
        list(values.values()),
        color=colour,
        linestyle=style,
        marker="." if len(values) < 40 else None,
        label=label,
    )


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _label(name: str, most: int = 40) -> str:
    """A name from a file, shortened; matplotlib would hide a name that begins with _."""
    text = short(name, most) or " "
    return f" {text}" if text.startswith("_") else text


def _legend(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    longest = max(map(len, labels))
    columns = max(1, min(len(labels), int(12 * figure.get_figwidth()) // (longest + 6)))
    figure.legend(handles, labels, loc="outside upper left", ncols=columns)


def _figure(height: float, bars: int = 1000) -> Figure:
    """A figure as wide as a page, or narrower if it has few bars, counted with their spaces."""
    from matplotlib.figure import Figure

    width = min(WIDTH, max(4.5, 0.35 * bars))
    return Figure(figsize=(width, height), layout="constrained")


@contextmanager
def _plotting() -> Iterator[None]:
    """Apply our own style, whatever the user's settings are."""
    check_time()
    try:
        import matplotlib
    except ValueError as error:  # of MPLBACKEND
        raise LmpnnError(f"matplotlib refuses its settings: {one_line(error)}") from error

    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({
            "svg.hashsalt": "lmpnn-kge",
            "svg.fonttype": "none",
            "text.parse_math": False,
            "font.size": 9,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.edgecolor": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.facecolor": "none",
            "figure.facecolor": "none",
            "savefig.facecolor": "none",
            "grid.color": INK,
            "grid.alpha": 0.15,
            "xtick.color": INK,
            "ytick.color": INK,
            "legend.frameon": False,
        })  # fmt: skip
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _svg(figure: Figure) -> str:
    """The picture in the colour of the text around it, without date and version."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    svg = re.sub(rf"(?<=: ){INK}\b", "currentColor", buffer.getvalue())
    dark = f"@media (prefers-color-scheme: dark) {{ svg {{ color: {INK_ON_DARK} }} }}"
    head, rest = svg[svg.index("<svg") :].split(">", 1)
    return f'{head} color="{INK}">\n<style>{dark}</style>{rest}'

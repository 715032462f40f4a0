"""The colors of every figure, and the style made of them."""

from matplotlib import cycler

# Okabe and Ito's, safe for color-blind readers; neighbors apart in lightness.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
INK, SKY, RED, YELLOW = "#222222", "#56B4E9", "#D55E00", "#F0E442"
SERIES = (BLUE, ORANGE, GREEN, PINK, INK, SKY, RED, YELLOW)

# Fills that text stays readable on.
LIGHT_BLUE, LIGHT_GREEN, LIGHT_YELLOW = "#cfe6f7", "#cdebdf", "#fbe3b5"

# From dark to light: marks and arrows, pale words and edges, what was dropped, grids, what a mask hides, fills.
SOOT, GREY, ASH, MIST, HIDDEN, CLOUD, SNOW = "#555555", "#737373", "#cccccc", "#dddddd", "#e4e4e4", "#eeeeee", "#f7f7f7"
PAPER = "white"

MAY_ATTEND = BLUE
WEIGHTS_MAP, SIGNED_MAP = "Blues", "RdBu_r"  # from 0 to 1; from negative over 0, white, to positive

# 100 dots per inch; an opaque light page, so that the dark theme shows it as it is.
STYLE = {
    "figure.dpi": 100,
    "figure.facecolor": PAPER,
    "figure.edgecolor": PAPER,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.08,
    "figure.constrained_layout.w_pad": 0.08,
    "figure.titlesize": 11,
    "figure.titleweight": "bold",
    "savefig.dpi": "figure",
    "savefig.facecolor": "auto",
    "font.size": 10,
    "text.color": INK,
    "axes.facecolor": PAPER,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.titlesize": 10,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.prop_cycle": cycler(color=SERIES),
    "grid.color": MIST,
    "grid.linewidth": 0.8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": MIST,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "hatch.linewidth": 0.8,
}

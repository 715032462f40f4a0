"""The mask painter: hide keys from queries, and see which weights become exactly 0 and which rows have none left."""

from collections.abc import Mapping, Sequence

import torch
import traitlets as t
from torch import Tensor

from course_lib.attention import attention_scores, attention_weights
from course_lib.figures import CourseFigure, Panel, panels
from course_lib.masks import check_mask
from course_lib.widgets.base import CourseWidget

MOST = 10  # rows or columns, for which the page has room
OPEN = "no mask"


class MaskPainter(CourseWidget):
    """Computes attention under a mask that a person paints.

    Args:
        query: (queries, d_k).
        key: (keys, d_k).
        queries, keys: tokens.
        masks: name to a mask (queries, keys), bool, True = may attend; offered beside "no mask", which is always there.
        mask: name of the one to begin with.

    Raises:
        ValueError: if names and shapes do not fit or are too many, a mask is not bool, or there is none of that name.
    """

    scores = t.List(t.List(t.Float())).tag(sync=True)  # before the mask
    names = t.Dict().tag(sync=True)  # of rows and columns: queries, keys
    masks = t.Dict().tag(sync=True)
    mask = t.List(t.List(t.Bool())).tag(sync=True)
    refusal = t.Unicode().tag(sync=True)  # what the library says to a row without an open key

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        queries: Sequence[str],
        keys: Sequence[str],
        masks: Mapping[str, Tensor],
        *,
        mask: str = OPEN,
    ):
        shape = len(queries), len(keys)
        if (len(query), len(key)) != shape or not 1 <= min(shape) <= max(shape) <= MOST:
            got = f"{tuple(query.shape)} and {tuple(key.shape)}"
            raise ValueError(f"expected {shape[0]} queries and {shape[1]} keys as named, 1 to {MOST} each; got {got}")
        for name, each in masks.items():
            if each.dtype != torch.bool or tuple(each.shape) != shape:
                raise ValueError(f"{name}: expected a bool mask {shape}, got {each.dtype} {tuple(each.shape)}")
        offered = {OPEN: torch.ones(shape, dtype=torch.bool), **masks}
        if mask not in offered:
            raise ValueError(f"expected a mask among {', '.join(offered)}, got {mask}")
        self._query, self._key = query.double(), key.double()
        super().__init__(
            scores=attention_scores(self._query, self._key).tolist(),
            names={"queries": list(queries), "keys": list(keys)},
            masks={name: each.tolist() for name, each in offered.items()},
            mask=offered[mask].tolist(),
            refusal=_refusal(),
        )

    @t.validate("mask")
    def _fits(self, proposal: dict) -> list:
        if [len(row) for row in proposal.value] != [len(self.names["keys"])] * len(self.names["queries"]):
            raise t.TraitError(f"expected a mask as large as the scores, got {proposal.value}")
        return proposal.value

    def compute(self) -> Tensor:
        """The weights (queries, keys) under the present mask.

        Raises:
            ValueError: if a query has nothing to attend to.
        """
        return attention_weights(self._query, self._key, torch.tensor(self.mask))

    def picture(self) -> CourseFigure:
        """The mask, and the weights where there are any."""
        mask, axes = torch.tensor(self.mask), dict(xlabel="key", ylabel="query")
        labels = tuple(self.names.values())
        drawn = [Panel(mask, *labels, "mask", kind="mask", **axes)]
        title = f"{mask.sum()} of {mask.numel()} pairs are open"
        try:
            drawn.append(Panel(self.compute(), *labels, "weights", kind="weights", **axes))
            title += ", and the other weights are exactly 0" * (not mask.all())
        except ValueError as error:
            title += f", but {error}"
        return panels(drawn, title=title)


def _refusal() -> str:
    try:
        check_mask(torch.zeros(1, 1, dtype=torch.bool), (1, 1))
    except ValueError as error:
        return str(error)
    raise AssertionError("the library takes an empty row")

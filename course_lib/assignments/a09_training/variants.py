"""Other conventions of assignment 09: where Adam has its weight decay, and where its ε."""

from course_lib.assignments.variants import Variant
from course_lib.checks import Edit

VARIANTS = {
    "09.adam": (
        Variant(
            "coupled weight decay",
            Edit(
                "with the decoupled weight decay that the lesson only described.",
                "with the older, *coupled* weight decay: first, `decay` times the weight is added to the gradient.",
                "With the gradient $g$ of step $t$, which", "With this sum as $g$, at step $t$, which",
                r"w_t = w_{t-1} - \text{lr} \cdot \text{decay} \cdot w_{t-1} - ", "w_t = w_{t-1} - ",
                "Adam with decoupled", "Adam with coupled",
                "    m = BETA1 * m", "    gradient = gradient + decay * weight\n    m = BETA1 * m",
                "weight - lr * decay * weight - lr", "weight - lr",
            ),
            untrue=("Your ε is inside the root,",),  # a gradient with a weight in it is never that small
        ),
        Variant(
            "ε inside the root",
            Edit(
                r"\sqrt{\hat v} + \varepsilon", r"\sqrt{\hat v + \varepsilon}",
                "v_corrected.sqrt() + EPS", "v_corrected + EPS).sqrt(",
                "that the lesson only described.", "that the lesson only described, and with ε inside the root.",
            ),
        ),
    ),
}

"""Checks of assignment 20: which fault each run has; and five parts of a training script, put into it and trained."""

import torch

from course_lib.checks import PLANTED, Edit, Exercise, value
from course_lib.experiments import Parts

TRIANGLE = "torch.ones(length, length, dtype=torch.bool).tril()"
SHIFTED = "tgt[:, :-1], tgt[:, 1:]"
ALL = "logits.flatten(0, 1), tgt_out.flatten(), ignore_index=PAD_ID"
UP, DOWN = "step / warmup_steps", "(warmup_steps / step) ** 0.5"


def small_trainings(part, number):
    """Cases of a part: seeds of small corpora and models."""
    return lambda generator: [(part, int(seed)) for seed in torch.randint(10_000, (number,), generator=generator)]


def train_small(answer, part, seed):
    """Asks for what a small training does with the answer in the script."""
    from course_lib.experiments import retrained

    return retrained(part, answer, seed)


def instead(run, fault):
    """A prediction with another fault for one run."""
    names = {"A": "dropout", "B": "shift", "C": "vocabulary", "D": "mask", "E": "padding", "F": "warm-up"}
    return Edit(f'"{run}": "{names[run]}"', f'"{run}": "{fault}"')


def exchanged(first, second):
    """The prediction in which two faults have changed places."""
    return Edit(f'"{first}"', '"?"', f'"{second}"', f'"{first}"', '"?"', f'"{second}"')


def script_part(name, part, mistakes, **options):
    """An exercise on a part of the script, whose finished one is the library's."""
    return Exercise(
        name,
        small_trainings(part, 1 + ("loops" in options)),
        mistakes,
        ask=train_small,
        library=True,
        forbidden=(getattr(Parts(), part),),
        tolerance=1e-3,
        **options,
    )


EXERCISES = (
    Exercise(
        "20.faults",
        mistakes={
            "B and D look alike in their logs. In which of them does an output change with a later token, "
            "and in which does tgt_in have the token of tgt_out at the same position?": exchanged("shift", "mask"),
            "A and C are exchanged. Measure the validation loss of each twice, "
            "and look for tokens of the vocabulary that no training text contains.": exchanged("dropout", "vocabulary"),
            "A and E are exchanged. Which one's validation loss changes when it is measured again, "
            "and which one's when the batch gets more padding?": exchanged("dropout", "padding"),
            "A and F are exchanged. Print run.rate(1) of both, and measure the validation loss of both twice.":
                exchanged("dropout", "warm-up"),
            "C and E are exchanged. Add columns of padding to a batch of each.": exchanged("vocabulary", "padding"),
            "C and F are exchanged. Which of them translates some sentences right?":
                exchanged("vocabulary", "warm-up"),
            "E and F are exchanged. Padding that counts makes a loss small, and here one is large.":
                exchanged("padding", "warm-up"),
            "Every name comes once. Is it the mask in B? Change a token there, and look at the outputs before it.":
                instead("B", "mask"),
            "Every name comes once. Is it the shift in D? Print tgt_in and tgt_out of a batch.": instead("D", "shift"),
        },
        ask=value,
    ),
    script_part(
        "20.shift",
        "batch_of",
        {
            "Each position still reads the very token that it must predict.":
                (PLANTED, Edit(SHIFTED, "tgt[:, :-1], tgt[:, :-1]"), Edit(SHIFTED, "tgt[:, 1:], tgt[:, 1:]")),
            "The other way round: each position reads what comes, and must say what was.":
                Edit(SHIFTED, "tgt[:, 1:], tgt[:, :-1]"),
            "This is a shift by two: after <s> the model is asked for the second token.":
                Edit(SHIFTED, "tgt[:, :-2], tgt[:, 2:]"),
            "Nothing stands before the first token, so it is never predicted: begin with <s>.":
                Edit("[BOS_ID, *tgt, EOS_ID]", "[*tgt, EOS_ID]"),
            "Without </s> the model never learns where a sentence ends.":
                Edit("[BOS_ID, *tgt, EOS_ID]", "[BOS_ID, *tgt]"),
            "A target begins with <s>; translating starts from there, and yours has never seen it.":
                Edit("[BOS_ID, *tgt, EOS_ID]", "[EOS_ID, *tgt, EOS_ID]"),
            "A target ends with </s>, not with another <s>.": Edit("[BOS_ID, *tgt, EOS_ID]", "[BOS_ID, *tgt, BOS_ID]"),
            "<s> and </s> have changed places.": Edit("[BOS_ID, *tgt, EOS_ID]", "[EOS_ID, *tgt, BOS_ID]"),
            "The targets are right now, but the sources have lost their </s>.":
                Edit("[src for src, _", "[src[:-1] for src, _"),
            "The sources get an <s>. They come as the encoder reads them.":
                Edit("[src for src, _", "[[BOS_ID, *src] for src, _"),
        },
    ),
    script_part(
        "20.mask",
        "may_attend",
        {
            "Upside down still: each position sees itself and what comes, and nothing of what was.": PLANTED,
            "Everything is seen, the future too.": Edit(".tril()", ""),
            "The diagonal is one too high: each position sees the token that it must predict.":
                Edit(".tril()", ".tril(1)"),
            "Every position sees itself alone. What came before may be seen.":
                Edit(TRIANGLE, "torch.eye(length, dtype=torch.bool)"),
            "Only the last two tokens are seen. All that came before may be.": Edit(".tril()", ".tril().triu(-1)"),
            "The triangle is mirrored: the first position sees the last token.": Edit(".tril()", ".tril().flip(-1)"),
            "The rows are in reverse order: the first one sees everything.": Edit(".tril()", ".tril().flip(-2)"),
            "A position may see itself: there stands the token that was written last.":
                Edit(".tril()", ".tril().logical_xor(torch.eye(length).bool() & (torch.arange(length) > 0))"),
            "All but itself is seen here.": Edit(TRIANGLE, "~torch.eye(length, dtype=torch.bool)"),
        },
    ),
    script_part(
        "20.rate",
        "rate_at",
        {
            "It still begins at its peak.": PLANTED,
            "The warm-up is right now, but the rate stays at its peak.": Edit(DOWN, "1"),
            "It falls with the step itself; the root is missing.": Edit(" ** 0.5", ""),
            "The larger of the two terms is taken. The smaller one is right on both sides of the peak.":
                Edit("min(", "max("),
            "Steps count from 1, and yours from 0: the first step does nothing.": Edit(UP, "(step - 1) / warmup_steps"),
            "The peak comes a step early.": Edit(UP, "(step + 1) / warmup_steps"),
            "It rises with the root of the step. It should rise in a line.":
                Edit(UP, "(step / warmup_steps) ** 0.5"),
            "It rises with the square of the step. It should rise in a line.":
                Edit(UP, "(step / warmup_steps) ** 2"),
            "Behind the peak there is a jump: the root of warmup_steps is missing.": Edit(DOWN, "step**-0.5"),
            "The peak is 1 here, whatever `peak` is.": Edit("peak * ", ""),
            "The two terms are multiplied, so it rises without end. Take the smaller one.":
                Edit(f"min({UP}, {DOWN})", f"({UP}) * {DOWN}"),
        },
    ),
    script_part(
        "20.loss",
        "loss_of",
        {
            "<pad> still counts as a token to be predicted.": PLANTED,
            "Padding is left out of the sum, but you divide by all positions.":
                Edit(ALL, f'{ALL}, reduction="sum") / (tgt_out.numel()'),
            "This is a sum over tokens. The mean is asked for.": Edit(ALL, f'{ALL}, reduction="sum"'),
            "The sum is divided by the number of sentences. Divide by that of the real tokens.":
                Edit(ALL, f'{ALL}, reduction="sum") / (len(tgt_out)'),
            "It is </s> that you leave out, and padding counts.": Edit("PAD_ID", "EOS_ID"),
            "It is <s> that you leave out, and padding counts.": Edit("PAD_ID", "BOS_ID"),
            "Labels are smoothed here. The plain loss is asked for.": Edit(ALL, f"{ALL}, label_smoothing=0.1"),
            "Padding is left out, but </s> as well; the model must learn where to end.":
                Edit("tgt_out.flatten()", "tgt_out.masked_fill(tgt_out == EOS_ID, PAD_ID).flatten()"),
            "cross_entropy makes its own softmax: give it logits, not log-probabilities of probabilities.":
                Edit("logits.flatten", "logits.softmax(dim=-1).flatten"),
            "At padding the logits are 0 now, and count still.":
                Edit("logits.flatten", "(logits * (tgt_out != PAD_ID)[..., None]).flatten",
                     ", ignore_index=PAD_ID", ""),
        },
        loops=False,
    ),
    script_part(
        "20.evaluate",
        "evaluate",
        {
            "Dropout is still on while it is measured.":
                (PLANTED, Edit("model.eval()", "model.training = False")),
            "Nobody switches dropout on again: after the first evaluation the training goes on without it.":
                Edit("    model.train()\n", ""),
            "You switch after measuring; that is too late for this number, and for the training too early.":
                Edit("    model.eval()\n", "", "model.train()", "model.eval()"),
            "The decoder alone is switched. There is dropout in the encoder and in the embeddings as well.":
                Edit("model.eval()", "model.decoder.eval()"),
            "The encoder alone is switched. There is dropout in the decoder and in the embeddings as well.":
                Edit("model.eval()", "model.encoder.eval()"),
            "With a seed the noise comes out the same each time. It is still there, and now in the training, too.":
                Edit("model.eval()", "torch.manual_seed(0)"),
            "The mean of some noisy measurements is less noisy. It is still that of a model with dropout.":
                Edit("    model.eval()\n", "", "measure()", "sum(measure() for _ in range(10)) / 10"),
            "Dropout is off for good: its rate is 0 from the first evaluation on.":
                Edit("model.eval()", "[vars(part).update(p=0.0) for part in model.modules() if hasattr(part, 'p')]"),
            "The model that you measure is right, and stays in evaluation mode but for its decoder.":
                Edit("model.train()", "model.decoder.train()"),
        },
    ),
)

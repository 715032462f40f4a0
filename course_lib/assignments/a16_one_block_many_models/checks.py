"""Checks of assignment 16: blanks, the loss of an answer, several texts in a row, and patches that become a picture."""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.checks import PLANTED, Edit, Exercise, value

SPECIAL = " & ~torch.isin(ids, specials)"
TAKEN = "log_probs.gather(-1, targets[..., None])[..., 0]"
ORDER = "permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)"


def dice(generator):
    """Texts with special tokens at their ends, and among the thrown numbers those on the edge of each rule."""
    cases = []
    for batch, length, vocab in ((1, 8, 9), (2, 10, 20), (3, 12, 12), (2, 30, 40)):
        ids, other = (torch.randint(5, vocab, (batch, length), generator=generator) for _ in range(2))
        ids[:, 0], ids[-1, -3:], other[:, 2] = 1, torch.tensor([2, 0, 0]), ids[:, 2]
        chance, fate = (torch.rand(batch, length, generator=generator) for _ in range(2))
        chance = chance / 3  # more places than BERT would ask for
        chance[:, :5], chance[-1, -3:] = torch.tensor([0.1, 0.15, 0.05, 0.02, 0.0]), 0.01
        fate[:, :5] = torch.tensor([0.95, 0.1, 0.85, 0.99, 0.4])
        cases.append((ids, chance, fate, other, torch.tensor([0, 1, 2, 3, 4]), 4))
    return cases


def conversations(generator):
    """Prompts and answers of different lengths, one answer empty, one that reaches the end of its row."""
    cases = []
    for batch, length, vocab in ((1, 4, 5), (2, 6, 4), (3, 5, 8), (3, 7, 6)):
        ids = torch.randint(1, vocab, (batch, length), generator=generator)
        prompt_lens = torch.randint(1, length - 1, (batch,), generator=generator)
        prompt_lens[0] = 2
        for row in range(1, batch):
            end = int(torch.randint(int(prompt_lens[row]), length, (), generator=generator))
            ids[row, end if row > 1 else length - 1 :] = 0
        if batch > 2:
            ids[2, prompt_lens[2] :] = 0  # no answer
        cases.append((2 * torch.randn(batch, length, vocab, generator=generator), ids, prompt_lens))
    return cases


def rows_of_texts(generator):
    """Rows with one text, with several, with numbers in any order; prompts at the beginning, in between, and none."""

    def number(low, high):
        return int(torch.randint(low, high, (), generator=generator))

    cases = [(torch.tensor([[3, 3, 3, 3]]), torch.tensor([[True, True, False, False]])),
             (torch.tensor([[0, 0, 0, 1, 1]]), torch.zeros(1, 5, dtype=torch.bool))]
    for batch, length in ((2, 7), (3, 9)):
        lengths = [[2, number(2, length - 3)] for _ in range(batch)]
        rows = [[7] * one + [2] * two + [5] * (length - one - two) for one, two in lengths]
        prompt = torch.rand(batch, length, generator=generator) < 0.3
        prompt[:, 1:3] = True
        cases.append((torch.tensor(rows), prompt))
    return cases


def cut_pictures(generator):
    """Patches of pictures that are square, wide and high, in one color or several."""
    cases = []
    for batch, channels, height, width, patch in ((1, 1, 4, 4, 2), (2, 3, 2, 6, 2), (1, 2, 12, 6, 3), (2, 3, 6, 4, 2)):
        length = height * width // patch**2
        cases.append((torch.randn(batch, length, channels * patch**2, generator=generator), height, width, patch))
    return cases


EXERCISES = (
    Exercise(
        "16.numbers",
        mistakes={
            "The class token is one more token, in front of the patches.": Edit(": 13,", ": 12,"),
            "Patches do not overlap: there are 4 × 3 of them.": Edit(": 13,", ": 425,"),
            "Each pixel of a patch has three numbers.": Edit(": 192", ": 64"),
            "Also the random words are other words than the text has, and not only the blanks.": Edit(": 135", ": 120"),
            "One of ten places that are asked for keeps its word.": Edit(": 135", ": 150"),
            "Asked for are 15 of 100 words, whether the model reads a blank there or not.":
                (Edit(": 150", ": 135"), Edit(": 150", ": 120")),
            "This is the mean of the two texts' means. Every token counts one.": Edit(": 2.0", ": 3.0"),
            "Bits are a logarithm: a probability of 1/2 is one bit, and 1/32 is five.": Edit(": 2.0", ": 4.0"),
            "A token sees itself, too.": Edit(": 28", ": 21"),
            "What the open prompt adds are the pairs above the diagonal, within the four tokens of the prompt.":
                (Edit(": 34", ": 44"), Edit(": 34", ": 16")),
            "The answer still has a causal mask: only the prompt is open to both sides.": Edit(": 34", ": 49"),
        },
        ask=value,
    ),
    Exercise(
        "16.blanks",
        dice,
        {
            "Both mistakes are still there. "
            "Which places keep their word though they are asked for? And is padding ever blank?":
                PLANTED,
            "Special tokens are left alone now. But places where the model reads the right word have no target: "
            "a place is asked for by its chance, whatever stands there.":
                Edit("torch.where(asked, ids, -100)", "torch.where(reads != ids, ids, -100)"),
            "The targets follow the chance now. Special tokens, such as padding, are still asked for.":
                Edit(SPECIAL, ""),
            "Only the blanks have a target. Asked for are the random and the unchanged words, too.":
                Edit("torch.where(asked, ids, -100)", "torch.where(reads == mask_id, ids, -100)"),
            "Every word that is asked for becomes a blank; two of ten do not.":
                Edit("torch.where(fate < 0.9, other, ids)", "mask_id"),
            "No word is ever replaced by a random one: below 0.8 there is a blank already.":
                Edit("fate < 0.9", "fate < 0.1"),
            "Every word that is asked for and has no blank becomes a random one; one of ten stays as it is.":
                Edit("torch.where(fate < 0.9, other, ids)", "other"),
            "Where nothing is asked, the target is −100, not the word.":
                Edit("torch.where(asked, ids, -100)", "ids"),
            "The targets are what the model reads. They are what stood there.":
                Edit("torch.where(asked, ids, -100)", "torch.where(asked, reads, -100)"),
            "The model reads blanks where nothing is asked.":
                Edit("reads = torch.where(asked, changed, ids)", "reads = changed"),
            "Padding is still asked for. It is a special token, too.":
                Edit("specials)", "specials[1:])"),
            "Random words and unchanged ones are exchanged: random from 0.8 to 0.9, unchanged from there on.":
                Edit("0.9, other, ids", "0.9, ids, other"),
            "The chance decides what is read, too. It decides what is asked for; what is read there, the fate decides.":
                Edit("fate < 0.8", "chance < 0.12", "fate < 0.9", "chance < 0.135"),
        },
    ),
    Exercise(
        "16.answers",
        conversations,
        {
            "Each row of logits is compared with its own token. It says what comes next.":
                Edit("ids[:, 1:]", "ids", "logits[:, :-1]", "logits", "arange(1, ids", "arange(ids"),
            "The tokens of the prompt count. Asked is for the answer alone.":
                Edit("(place >= prompt_lens[:, None]) & ", ""),
            "Padding counts as part of the answer.": Edit(" & (targets != pad_id)", ""),
            "The first token of each answer is missing. The last token of the prompt predicts it.":
                Edit("place >=", "place >"),
            "The last token of each prompt counts. The answer begins behind the prompt.":
                Edit("arange(1, ids.size(1)", "arange(2, ids.size(1) + 1"),
            "Every answer has the same say here, however long it is. Every answer token must.":
                Edit("(losses * counts).sum() / counts.sum()",
                     "((losses * counts).sum(1)[counts.any(1)] / counts.sum(1)[counts.any(1)]).mean()"),
            "This is the sum of the losses; asked is their mean.": Edit(" / counts.sum()", ""),
            "You divide by all tokens of the batch, those that do not count included.":
                Edit("counts.sum()", "counts.numel()"),
            "Padding is looked for one place too early, in what the model reads. It is the target that must be a word.":
                Edit("(targets != pad_id)", "(ids[:, :-1] != pad_id)"),
            "This is the perplexity, the exponential of the loss.":
                Edit("return (losses * counts).sum() / counts.sum()",
                     "return ((losses * counts).sum() / counts.sum()).exp()"),
            "These are bits. A nat is a natural logarithm.": Edit("counts.sum()", "counts.sum() / 0.6931471805599453"),
            "This is the mean of the targets' logits. A loss is the logarithm of a probability.":
                Edit(".log_softmax(dim=-1)", ""),
        },
        loops=False,
    ),
    Exercise(
        "16.packed",
        rows_of_texts,
        {
            "The texts see each other.": Edit("same & (causal", "(causal"),
            "A prompt is open to the tokens of every text. It is open to its own text only.":
                Edit("same & (causal | prompt[:, None, :])", "(same & causal) | prompt[:, None, :]"),
            "All is causal. The prompt is open to those that stand before it, too.":
                Edit(" | prompt[:, None, :]", ""),
            "The prompt's own tokens may see everything here. It is the prompt that may be seen.":
                Edit("prompt[:, None, :]", "prompt[:, :, None]"),
            "A token does not see itself.": Edit("place[:, None] >= place", "place[:, None] > place"),
            "Queries and keys are exchanged: rows of the mask are queries, columns are keys.":
                Edit("return mask", "return mask.mT"),
            "Within a text every token sees all others here. Ahead, there is only a prompt to be seen.":
                Edit("(causal | prompt[:, None, :])", "(causal | ~causal)"),
            "Positions count on over the whole row. Each text begins at 0.":
                Edit("(same & earlier).sum(dim=-1)", "place.expand(texts.shape)"),
            "Positions begin at 1; they begin at 0.": Edit("(same & earlier)", "(same & causal)"),
            "Positions count the tokens that may be seen, with those of the prompt; asked are those that stand before.":
                Edit("(same & earlier).sum", "mask.sum"),
            "Positions are counted from the end of each text.": Edit("sum(dim=-1)", "sum(dim=-2)"),
            "These positions count the tokens of the other texts that stand before. Count those of the own text.":
                Edit("(same & earlier)", "(~same & earlier)"),
            "In a prompt, only the prompt's own tokens look ahead here. All tokens of the text may see it.":
                Edit("prompt[:, None, :])", "(prompt[:, None, :] & prompt[:, :, None]))"),
        },
        loops=False,
    ),
    Exercise(
        "16.join",
        cut_pictures,
        {
            "A single `view` puts the numbers of a patch side by side in one row of pixels.":
                Edit(f"parts.{ORDER}", "patches.reshape(len(patches), -1, height, width)"),
            "The patches are right, and stand in the wrong order: they come row by row.":
                Edit("patches.unflatten(2, (-1, patch, patch)).unflatten(1, (rows, columns))",
                     "patches.unflatten(2, (-1, patch, patch)).unflatten(1, (columns, rows)).transpose(1, 2)"),
            "Each patch is turned about its diagonal: its numbers come row by row.":
                Edit(ORDER, "permute(0, 3, 1, 5, 2, 4).flatten(4, 5).flatten(2, 3)"),
            "The numbers of a patch are sorted by channel first, not by pixel first.":
                Edit("(-1, patch, patch)", "(patch, patch, -1)", "permute(0, 3, 1, 4, 2, 5)",
                     "permute(0, 5, 1, 3, 2, 4)"),
            "The channels come last; the picture is (batch, channels, height, width).":
                Edit(ORDER, "permute(0, 1, 4, 2, 5, 3).flatten(3, 4).flatten(1, 2)"),
            "Rows of pixels and rows of patches are exchanged: patch row first, then the row in the patch.":
                Edit(ORDER, "permute(0, 3, 4, 1, 2, 5).flatten(4, 5).flatten(2, 3)"),
            "Columns of pixels and columns of patches are exchanged: patch column first, then that in the patch.":
                Edit(ORDER, "permute(0, 3, 1, 4, 5, 2).flatten(4, 5).flatten(2, 3)"),
            "Height and width are exchanged.": Edit(ORDER, f"{ORDER}.mT"),
            "The pictures of the batch and the channels are exchanged.": Edit(ORDER, f"{ORDER}.transpose(0, 1)"),
            "The picture is upside down.": Edit(ORDER, f"{ORDER}.flip(2)"),
        },
        forbidden=(F.fold, nn.Fold, torch.nn.functional.pixel_shuffle, nn.PixelShuffle),
        loops=False,
    ),
)

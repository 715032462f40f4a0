"""The twelve questions. Each wrong choice is what some popular explanation says."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """One question with four choices, in words that go on a page as they are; `code` may be marked.

    Attributes:
        name: one word, which a notebook keeps the answer under.
        title: of its section.
        asked: the question.
        right: the right choice.
        wrong: each wrong choice, and the error in a few words that whoever takes it has made.
        because: why the right one is right.
        lesson: number of the lesson that shows it.
    """

    name: str
    title: str
    asked: str
    right: str
    wrong: Mapping[str, str]
    because: str
    lesson: str


QUESTIONS = (
    Question(
        "memory",
        "What the encoder hands over",
        "A source sentence has 12 tokens, and d_model is 512. What does the encoder hand to the decoder?",
        "12 vectors of 512 numbers, one for each source token",
        {
            "one vector of 512 numbers, which sums up the sentence": "the sentence is squeezed into a fixed length",
            "a table of 12 × 12 weights: how much each token attends to each": "the weights are what is handed over",
            "the keys and values of its last layer, which all decoder layers use":
                "the decoder layers share the encoder's keys and values",
        },
        "The memory is as long as the source, and each decoder layer projects its own keys and values from it.",
        "07",
    ),
    Question(
        "context",
        "What comes out of a head",
        "In one head of cross-attention d_k and d_v are 64. "
        "There are 5 target tokens and 7 source tokens. What comes out of this head?",
        "5 × 64 numbers: for each target token a weighted mean of the values",
        {
            "7 × 64 numbers: the matrix of the values": "cross-attention gives the value matrix",
            "5 × 7 numbers: how much each target token attends to each source token": "the weights are the output",
            "nothing yet: queries and keys must be equally many, so the target is padded to 7 first":
                "queries and keys must have the same shape",
        },
        "There is one context for each query; only d_k must be the same for queries and keys.",
        "03",
    ),
    Question(
        "padding",
        "A padded key",
        "Sentences are padded to one length, and somebody forgot the padding mask. "
        "A padded key has the score 0 with some query. Which weight does it get?",
        "more than 0: a score of 0 is a score like any other",
        {
            "0, because its score is 0": "a score of 0 is a weight of 0",
            "0, because a vector of padding is all zeros": "padding with zeros needs no mask",
            "some, which does no harm, because the loss leaves out the padding": "masking the loss is enough",
        },
        "e⁰ is 1, so the padding takes its share of the weights from the real tokens.",
        "05",
    ),
    Question(
        "causal",
        "What the causal mask is for",
        "Why does the decoder need a causal mask?",
        "so that all positions of a target can be trained in one pass, and none reads what it has to predict",
        {
            "because there is no target at the start, so nothing could be attended to":
                "the mask is needed because we start with nothing",
            "because training goes word by word, and later words are not there yet": "learning goes word by word",
            "so that the decoder does not look at the later words of the source": "the causal mask hides the source",
        },
        "Only in use are words written one by one; in training the whole target is there, and must be hidden in part.",
        "05",
    ),
    Question(
        "diagonal",
        "Which scores are blocked, and how",
        "Rows are queries, columns are keys. Which scores does the decoder's self-attention block, and how?",
        "those strictly above the diagonal: they become −∞ before the softmax",
        {
            "those on the diagonal and above it: they become −∞ before the softmax": "a token must not see itself",
            "those strictly above the diagonal: their weights become 0 after the softmax":
                "the mask is for the weights",
            "those strictly above the diagonal: they become 0 before the softmax": "a score of 0 is blocked",
        },
        "A position reads itself, since it predicts the next token; and only −∞ has an exponential of 0.",
        "05",
    ),
    Question(
        "norm",
        "Where the norm stands",
        "Where does the model of the paper normalize?",
        "after each residual sum: LayerNorm(x + sublayer(x))",
        {
            "before each sub-layer: x + sublayer(LayerNorm(x))": "the paper is pre-norm, as much code is",
            "after each residual sum, and once more at the end of each stack": "a final norm is the paper's",
            "inside the residual: x + LayerNorm(sublayer(x))": "the norm is that of the sub-layer's output",
        },
        "The paper is post-norm, and has no norm behind its stacks; a pre-norm model needs one.",
        "06",
    ),
    Question(
        "order",
        "The same words in another order",
        "Self-attention without positions and without a mask reads the same words in another order. "
        "What becomes of its outputs?",
        "each word gets the same vector as before, at its new place",
        {
            "nothing changes: the rows are the same, in the same order": "self-attention is permutation-invariant",
            "every vector changes, because each word has other neighbors": "attention knows neighbors by itself",
            "the words that moved get other vectors, the others keep theirs": "a vector depends on its place by itself",
        },
        "Self-attention is equivariant: its outputs are permuted as its inputs are. Only their mean stays as it is.",
        "02",
    ),
    Question(
        "longer",
        "Longer than in training",
        "A model with the paper's sinusoids was trained on sentences of up to 20 words. Now it gets 40. "
        "What do you expect?",
        "it runs, and gets worse: it has never learned to use those positions",
        {
            "it does as well as before: the formula has a vector for every position": "sinusoids extrapolate",
            "it stops with an error: there is no row for position 21": "the sinusoids end with the training",
            "words 21 to 40 look to it like words 1 to 20": "the encoding repeats",
        },
        "There is a vector for each position, and no two are equal; but having a vector is not knowing what it means.",
        "13",
    ),
    Question(
        "row",
        "Whose row is it?",
        "The decoder has read `<s> Die Katze` and will write `schläft` next. "
        "A map of cross-attention has a row for the query at `Katze`. Whose prediction does it belong to?",
        "that of `schläft`, which is predicted at this place",
        {
            "that of `Katze`, which stands at this place": "row t explains word t",
            "that of the source word at the same place": "rows and source words come in pairs",
            "none: rows are source words, and columns are target words": "rows are the source",
        },
        "The query at place t holds word t and predicts word t + 1; rows are target queries, columns source keys.",
        "12",
    ),
    Question(
        "heads",
        "More heads",
        "An attention with d_model 512 has 8 heads. It gets 16 instead. What becomes of the number of its parameters?",
        "it stays: each head is half as wide",
        {
            "it doubles: each further head brings matrices of its own": "a head has a fixed width",
            "only the output projection grows: it brings 16 × 64 numbers back to 512": "heads widen, W_O narrows again",
            "there is no such model: the number of heads must be a multiple of d_model":
                "h must be divisible by d_model",
        },
        "The heads share d_model among them, so d_model must be divisible by their number; W_O is 512 × 512 anyway.",
        "04",
    ),
    Question(
        "schedule",
        "After the warm-up",
        "The paper's learning rate rises for `warmup_steps` steps. And then?",
        "it falls with the inverse square root of the step",
        {
            "it stays as high as it is": "after the warm-up the rate is constant",
            "it falls in a straight line, to 0 at the last step": "the decay is linear",
            "Adam takes over: it finds the rate of each weight by itself": "Adam needs no schedule",
        },
        "The rate is d_model^−0.5 · min(step^−0.5, step · warmup^−1.5): the first of both is the smaller one then.",
        "09",
    ),
    Question(
        "bleu",
        "Which BLEU?",
        "Which number should be reported as a model's BLEU?",
        "that of the whole test set, from sentences that the model has written by itself",
        {
            "the mean of the BLEU of each test sentence": "BLEU is averaged over sentences",
            "that of the likeliest tokens, each predicted after the reference so far": "teacher forcing is translating",
            "the best one on the test set, over several beam sizes": "choosing on the test set is fair",
        },
        "BLEU is a score of a corpus and of free-running output, with choices made on the validation set.",
        "10",
    ),
)

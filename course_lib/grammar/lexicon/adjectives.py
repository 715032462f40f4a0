"""The adjectives, each with the noun classes (or nouns, in English) that it describes.

`rank` orders two adjectives before one noun, as both languages do: size, age, color.
"""

from course_lib.grammar.lexicon.entries import Adjective
from course_lib.grammar.lexicon.nouns import NOUNS


def _adjective(english: str, german: str, rank: int, classes: str, stem: str = "") -> Adjective:
    return Adjective(english, german, stem or german, rank, frozenset(classes.split()))


ADJECTIVES = (
    _adjective("big", "groß", 1, "sized animal egg apple fruit cake"),
    _adjective("small", "klein", 1, "sized animal child boy girl apple fruit cake egg"),
    _adjective("long", "lang", 1, "long"),
    _adjective("heavy", "schwer", 1, "heavy furniture"),
    _adjective("beautiful", "schön", 2, "beautiful_place clothing flower picture horse bird cat queen woman lamp cup"),
    _adjective("friendly", "freundlich", 2, "adult young dog"),
    _adjective("clever", "klug", 2, "adult young pet wild pig mouse"),
    _adjective("happy", "glücklich", 2, "human pet"),
    _adjective("sad", "traurig", 2, "adult young dog story"),
    _adjective("hungry", "hungrig", 2, "animate"),
    _adjective("tired", "müde", 2, "animate", stem="müd"),
    _adjective("sick", "krank", 2, "animate"),
    _adjective("strong", "stark", 2, "man brother son boy wild horse strong_drink"),
    _adjective("rich", "reich", 2, "man woman neighbor aunt doctor queen city"),
    _adjective("interesting", "interessant", 2, "readable interesting picture"),
    _adjective("boring", "langweilig", 2, "readable museum city village"),
    _adjective("expensive", "teuer", 2, "buy", stem="teur"),
    _adjective("cheap", "billig", 2, "buy"),
    _adjective("empty", "leer", 2, "hollow room house cinema wardrobe shelf station"),
    _adjective("dirty", "schmutzig", 2, "washable room dog pig window clothing"),
    _adjective("clean", "sauber", 2, "washable room window clothing water bed"),
    _adjective("dark", "dunkel", 2, "dark room house", stem="dunkl"),
    _adjective("hot", "heiß", 3, "hot"),
    _adjective("cold", "kalt", 3, "drink hot room church house"),
    _adjective("warm", "warm", 3, "warm_thing hot room"),
    _adjective("fresh", "frisch", 3, "fresh"),
    _adjective("sweet", "süß", 3, "sweet"),
    _adjective("old", "alt", 4, "adult animal thing furniture place vehicle cheese bread"),
    _adjective("young", "jung", 4, "animal man woman doctor teacher neighbor student queen"),
    _adjective("new", "neu", 4, "thing furniture place vehicle teacher neighbor student doctor"),
    _adjective("red", "rot", 5, "colored fruit"),
    _adjective("blue", "blau", 5, "colored"),
    _adjective("green", "grün", 5, "colored fruit"),
    _adjective("black", "schwarz", 5, "colored dog cat horse lamb bird bear tea coffee"),
    _adjective("white", "weiß", 5, "colored cat horse duck mouse bird"),
    _adjective("brown", "braun", 5, "dog horse cow bear egg furniture coat jacket hat bag"),
)
ADJECTIVE = {adjective.english: adjective for adjective in ADJECTIVES}

ADJECTIVES_FOR = {
    noun: tuple(a for a in ADJECTIVES if noun.english in a.classes or noun.classes & a.classes) for noun in NOUNS
}

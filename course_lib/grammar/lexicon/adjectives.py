"""The adjectives.

Columns: English | German, and the stem of its other forms where it differs | rank | the noun classes (or nouns, in
English) that it describes. The rank orders two adjectives before one noun, as both languages do: size, age, color.
"""

from course_lib.grammar.lexicon.entries import Adjective
from course_lib.grammar.lexicon.nouns import NOUNS

_TABLE = """
    big | groß | 1 | sized animal egg apple fruit cake
    small | klein | 1 | sized animal child boy girl apple fruit cake egg
    long | lang | 1 | long
    heavy | schwer | 1 | heavy furniture
    beautiful | schön | 2 | beautiful_place clothing flower picture horse bird cat queen woman lamp cup
    friendly | freundlich | 2 | adult young dog
    clever | klug | 2 | adult young pet wild pig mouse
    happy | glücklich | 2 | human pet
    sad | traurig | 2 | adult young story
    hungry | hungrig | 2 | animate
    tired | müde müd | 2 | animate
    sick | krank | 2 | animate
    strong | stark | 2 | man brother son boy wild horse strong_drink
    rich | reich | 2 | man woman neighbor aunt doctor queen city
    interesting | interessant | 2 | readable interesting picture
    boring | langweilig | 2 | readable museum city village
    expensive | teuer teur | 2 | buy
    cheap | billig | 2 | buy
    empty | leer | 2 | hollow room house cinema wardrobe shelf station
    dirty | schmutzig | 2 | washable room dog pig window clothing
    clean | sauber | 2 | washable room window clothing water bed
    dark | dunkel dunkl | 2 | dark room house
    hot | heiß | 3 | hot
    cold | kalt | 3 | drink hot room church house
    warm | warm | 3 | warm_thing hot room
    fresh | frisch | 3 | fresh
    sweet | süß | 3 | sweet
    old | alt | 4 | adult animal thing furniture place vehicle cheese bread
    young | jung | 4 | animal man woman doctor teacher neighbor student queen
    new | neu | 4 | thing furniture vehicle built teacher neighbor student doctor
    red | rot | 5 | colored fruit
    blue | blau | 5 | colored
    green | grün | 5 | colored fruit
    black | schwarz | 5 | colored dog cat horse lamb bird bear tea coffee
    white | weiß | 5 | colored cat horse duck mouse bird
    brown | braun | 5 | dog horse cow bear egg furniture coat jacket hat bag
"""


def _adjective(line: str) -> Adjective:
    english, german, rank, classes = (column.strip() for column in line.split("|"))
    form, *stem = german.split()
    return Adjective(english, form, stem[0] if stem else form, int(rank), frozenset(classes.split()))


ADJECTIVES = tuple(map(_adjective, _TABLE.strip().splitlines()))
ADJECTIVE = {adjective.english: adjective for adjective in ADJECTIVES}

ADJECTIVES_FOR = {
    noun: tuple(a for a in ADJECTIVES if noun.english in a.classes or noun.classes & a.classes) for noun in NOUNS
}

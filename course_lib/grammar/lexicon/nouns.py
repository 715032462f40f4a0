"""The nouns: 30 of each gender, with the classes that verbs and adjectives select.

Columns: English singular and plural, German nominative, genitive and nominative plural, classes.
One form fewer means there is no plural (a mass noun).
"""

from course_lib.grammar.lexicon.entries import Noun


def _noun(english: str, german: str, gender: str, classes: str, pronoun: str = "it", weak: bool = False) -> Noun:
    singular, *english_plural = english.split()
    nominative, genitive, *plural = german.split()
    return Noun(
        singular,
        english_plural[0] if english_plural else "",
        nominative,
        gender,
        genitive,
        plural[0] if plural else "",
        frozenset(classes.split()),
        pronoun,
        weak,
        not plural,
    )


_ADULT = "human animate adult"
_KIN = "human animate adult kin"
_YOUNG = "human animate young"
_CLOTHES = "thing clothing lie own buy colored washable sized"

_MASCULINE = (
    _noun("man men", "Mann Mannes Männer", "m", _ADULT, "he"),
    _noun("boy boys", "Junge Jungen Jungen", "m", _YOUNG, "he", weak=True),
    _noun("father fathers", "Vater Vaters Väter", "m", _KIN, "he"),
    _noun("brother brothers", "Bruder Bruders Brüder", "m", _KIN + " own", "he"),
    _noun("son sons", "Sohn Sohnes Söhne", "m", _KIN + " own", "he"),
    _noun("teacher teachers", "Lehrer Lehrers Lehrer", "m", _ADULT + " goal", "he"),
    _noun("doctor doctors", "Arzt Arztes Ärzte", "m", _ADULT + " goal", "he"),
    _noun("neighbor neighbors", "Nachbar Nachbarn Nachbarn", "m", _ADULT + " goal", "he", weak=True),
    _noun("student students", "Student Studenten Studenten", "m", _ADULT, "he", weak=True),
    _noun("dog dogs", "Hund Hundes Hunde", "m", "animal animate pet own player washable"),
    _noun("bird birds", "Vogel Vogels Vögel", "m", "animal animate singer"),
    _noun("bear bears", "Bär Bären Bären", "m", "animal animate wild", weak=True),
    _noun("lion lions", "Löwe Löwen Löwen", "m", "animal animate wild", weak=True),
    _noun("apple apples", "Apfel Apfels Äpfel", "m", "food buy fresh sweet fruit lie small_thing"),
    _noun("cake cakes", "Kuchen Kuchens Kuchen", "m", "food buy fresh sweet stand small_thing"),
    _noun("cheese", "Käse Käses", "m", "food buy fresh"),
    _noun("tea", "Tee Tees", "m", "drink hot strong_drink buy"),
    _noun("coffee", "Kaffee Kaffees", "m", "drink hot strong_drink buy"),
    _noun(
        "letter letters", "Brief Briefes Briefe", "m", "thing readable written lie openable sendable long small_thing"
    ),
    _noun("ball balls", "Ball Balles Bälle", "m", "thing toy own buy colored small_thing sized"),
    _noun("key keys", "Schlüssel Schlüssels Schlüssel", "m", "thing lie small_thing sized"),
    _noun("hat hats", "Hut Hutes Hüte", "m", _CLOTHES),
    _noun("coat coats", "Mantel Mantels Mäntel", "m", _CLOTHES + " warm_thing long"),
    _noun("table tables", "Tisch Tisches Tische", "m", "furniture stand own buy colored washable sized"),
    _noun("chair chairs", "Stuhl Stuhles Stühle", "m", "furniture stand own buy colored repairable sized"),
    _noun(
        "wardrobe wardrobes",
        "Schrank Schrankes Schränke",
        "m",
        "furniture stand buy sized openable closable tidy colored",
    ),
    _noun("garden gardens", "Garten Gartens Gärten", "m", "place own sized beautiful_place"),
    _noun("forest forests", "Wald Waldes Wälder", "m", "place dark sized beautiful_place"),
    _noun("station stations", "Bahnhof Bahnhofs Bahnhöfe", "m", "place sized"),
    _noun("bus buses", "Bus Busses Busse", "m", "vehicle awaited repairable colored hollow sized"),
)

_FEMININE = (
    _noun("woman women", "Frau Frau Frauen", "f", _ADULT, "she"),
    _noun("mother mothers", "Mutter Mutter Mütter", "f", _KIN, "she"),
    _noun("sister sisters", "Schwester Schwester Schwestern", "f", _KIN + " own", "she"),
    _noun("daughter daughters", "Tochter Tochter Töchter", "f", _KIN + " own", "she"),
    _noun("aunt aunts", "Tante Tante Tanten", "f", _KIN + " goal", "she"),
    _noun("grandmother grandmothers", "Großmutter Großmutter Großmütter", "f", _KIN + " goal", "she"),
    _noun("queen queens", "Königin Königin Königinnen", "f", _ADULT, "she"),
    _noun("cat cats", "Katze Katze Katzen", "f", "animal animate pet own player"),
    _noun("mouse mice", "Maus Maus Mäuse", "f", "animal animate own"),
    _noun("cow cows", "Kuh Kuh Kühe", "f", "animal animate farm"),
    _noun("duck ducks", "Ente Ente Enten", "f", "animal animate farm"),
    _noun("soup soups", "Suppe Suppe Suppen", "f", "food hot fresh"),
    _noun("milk", "Milch Milch", "f", "drink hot buy fresh"),
    _noun("chocolate", "Schokolade Schokolade", "f", "food buy sweet"),
    _noun("banana bananas", "Banane Banane Bananen", "f", "food buy fresh sweet lie small_thing"),
    _noun("tomato tomatoes", "Tomate Tomate Tomaten", "f", "food buy fresh fruit lie small_thing"),
    _noun("newspaper newspapers", "Zeitung Zeitung Zeitungen", "f", "thing readable lie buy small_thing"),
    _noun("story stories", "Geschichte Geschichte Geschichten", "f", "readable written tellable long"),
    _noun("flower flowers", "Blume Blume Blumen", "f", "thing buy colored fresh small_thing"),
    _noun(
        "bag bags",
        "Tasche Tasche Taschen",
        "f",
        "thing lie own buy colored openable closable hollow heavy small_thing sized",
    ),
    _noun("cup cups", "Tasse Tasse Tassen", "f", "thing stand buy colored washable hollow small_thing sized"),
    _noun("bottle bottles", "Flasche Flasche Flaschen", "f", "thing stand openable hollow buy small_thing sized"),
    _noun("lamp lamps", "Lampe Lampe Lampen", "f", "thing stand own buy colored repairable heavy sized"),
    _noun("clock clocks", "Uhr Uhr Uhren", "f", "thing own buy repairable heavy sized"),
    _noun("jacket jackets", "Jacke Jacke Jacken", "f", _CLOTHES + " warm_thing"),
    _noun("bench benches", "Bank Bank Bänke", "f", "furniture stand colored long repairable sized"),
    _noun("city cities", "Stadt Stadt Städte", "f", "place visitable sized beautiful_place interesting"),
    _noun("school schools", "Schule Schule Schulen", "f", "place visitable sized"),
    _noun("kitchen kitchens", "Küche Küche Küchen", "f", "place tidy room own sized"),
    _noun("church churches", "Kirche Kirche Kirchen", "f", "place visitable beautiful_place dark sized"),
)

_NEUTER = (
    _noun("child children", "Kind Kindes Kinder", "n", _YOUNG + " own", "it"),
    _noun("girl girls", "Mädchen Mädchens Mädchen", "n", _YOUNG, "she"),
    _noun("baby babies", "Baby Babys Babys", "n", "human animate baby", "it"),
    _noun("horse horses", "Pferd Pferdes Pferde", "n", "animal animate own washable farm"),
    _noun("lamb lambs", "Lamm Lammes Lämmer", "n", "animal animate farm"),
    _noun("chicken chickens", "Huhn Huhns Hühner", "n", "animal animate farm"),
    _noun("pig pigs", "Schwein Schweines Schweine", "n", "animal animate farm"),
    _noun("bread", "Brot Brotes", "n", "food buy fresh warm_thing"),
    _noun("egg eggs", "Ei Eies Eier", "n", "food buy fresh small_thing"),
    _noun("water", "Wasser Wassers", "n", "drink hot fresh"),
    _noun("beer", "Bier Bieres", "n", "drink buy"),
    _noun("meat", "Fleisch Fleisches", "n", "food buy fresh"),
    _noun(
        "book books",
        "Buch Buches Bücher",
        "n",
        "thing readable written lie own buy closable heavy long small_thing sized",
    ),
    _noun("picture pictures", "Bild Bildes Bilder", "n", "thing buy sized own"),
    _noun("glass glasses", "Glas Glases Gläser", "n", "thing stand washable hollow small_thing sized buy"),
    _noun("knife knives", "Messer Messers Messer", "n", "thing lie washable small_thing sized buy"),
    _noun(
        "bicycle bicycles",
        "Fahrrad Fahrrads Fahrräder",
        "n",
        "vehicle own buy colored repairable washable sized",
    ),
    _noun("car cars", "Auto Autos Autos", "n", "vehicle own buy colored repairable washable sized awaited"),
    _noun("shirt shirts", "Hemd Hemdes Hemden", "n", _CLOTHES),
    _noun("dress dresses", "Kleid Kleides Kleider", "n", _CLOTHES + " long"),
    _noun("gift gifts", "Geschenk Geschenks Geschenke", "n", "thing openable buy sendable awaited sized"),
    _noun("window windows", "Fenster Fensters Fenster", "n", "openable closable washable sized"),
    _noun("house houses", "Haus Hauses Häuser", "n", "place own tidy room sized beautiful_place"),
    _noun("room rooms", "Zimmer Zimmers Zimmer", "n", "place tidy room own sized"),
    _noun("village villages", "Dorf Dorfes Dörfer", "n", "place visitable beautiful_place sized"),
    _noun("museum museums", "Museum Museums Museen", "n", "place visitable interesting sized"),
    _noun("cinema cinemas", "Kino Kinos Kinos", "n", "place sized"),
    _noun("bed beds", "Bett Bettes Betten", "n", "furniture stand own buy warm_thing sized"),
    _noun("sofa sofas", "Sofa Sofas Sofas", "n", "furniture stand own buy colored sized"),
    _noun("shelf shelves", "Regal Regals Regale", "n", "furniture stand buy colored repairable tidy sized"),
)

NOUNS = _MASCULINE + _FEMININE + _NEUTER
NOUN = {noun.english: noun for noun in NOUNS}
NAMES = {"Anna": "she", "Maria": "she", "Paul": "he", "Peter": "he"}

"""The nouns: 30 of each gender, with the classes that verbs and adjectives select.

Columns: English singular and plural | German nominative, genitive and nominative plural | classes | what is special:
the English pronoun where it is not "it", and "weak". One form fewer means there is no plural (a mass noun).
"""

from collections.abc import Sequence

from course_lib.grammar.lexicon.entries import Noun

_MASCULINE = """
    man men | Mann Mannes Männer | ADULT | he
    boy boys | Junge Jungen Jungen | YOUNG | he weak
    father fathers | Vater Vaters Väter | KIN | he
    brother brothers | Bruder Bruders Brüder | KIN | he
    son sons | Sohn Sohnes Söhne | KIN | he
    teacher teachers | Lehrer Lehrers Lehrer | ADULT | he
    doctor doctors | Arzt Arztes Ärzte | ADULT | he
    neighbor neighbors | Nachbar Nachbarn Nachbarn | ADULT | he weak
    student students | Student Studenten Studenten | ADULT | he weak
    dog dogs | Hund Hundes Hunde | animal animate pet washable
    bird birds | Vogel Vogels Vögel | animal animate
    bear bears | Bär Bären Bären | animal animate wild | weak
    lion lions | Löwe Löwen Löwen | animal animate wild | weak
    apple apples | Apfel Apfels Äpfel | food buy fresh sweet fruit small_thing
    cake cakes | Kuchen Kuchens Kuchen | food buy fresh sweet stand small_thing
    cheese | Käse Käses | food buy fresh
    tea | Tee Tees | drink hot strong_drink buy
    coffee | Kaffee Kaffees | drink hot strong_drink buy
    letter letters | Brief Briefes Briefe | thing readable written long small_thing
    ball balls | Ball Balles Bälle | thing buy colored small_thing sized
    key keys | Schlüssel Schlüssels Schlüssel | thing small_thing sized
    hat hats | Hut Hutes Hüte | CLOTHES
    coat coats | Mantel Mantels Mäntel | CLOTHES warm_thing long
    table tables | Tisch Tisches Tische | furniture stand buy colored washable sized
    chair chairs | Stuhl Stuhles Stühle | furniture stand buy colored sized
    wardrobe wardrobes | Schrank Schrankes Schränke | furniture stand buy sized colored
    garden gardens | Garten Gartens Gärten | place built sized beautiful_place
    forest forests | Wald Waldes Wälder | place dark sized beautiful_place
    station stations | Bahnhof Bahnhofs Bahnhöfe | place built sized
    bus buses | Bus Busses Busse | vehicle colored hollow sized
"""
_FEMININE = """
    woman women | Frau Frau Frauen | ADULT | she
    mother mothers | Mutter Mutter Mütter | KIN | she
    sister sisters | Schwester Schwester Schwestern | KIN | she
    daughter daughters | Tochter Tochter Töchter | KIN | she
    aunt aunts | Tante Tante Tanten | KIN | she
    grandmother grandmothers | Großmutter Großmutter Großmütter | KIN | she
    queen queens | Königin Königin Königinnen | ADULT | she
    cat cats | Katze Katze Katzen | animal animate pet
    mouse mice | Maus Maus Mäuse | animal animate
    cow cows | Kuh Kuh Kühe | animal animate farm
    duck ducks | Ente Ente Enten | animal animate farm
    soup | Suppe Suppe | food hot fresh
    milk | Milch Milch | drink hot buy fresh
    chocolate | Schokolade Schokolade | food buy sweet
    banana bananas | Banane Banane Bananen | food buy fresh sweet small_thing
    tomato tomatoes | Tomate Tomate Tomaten | food buy fresh fruit small_thing
    newspaper newspapers | Zeitung Zeitung Zeitungen | thing readable buy small_thing
    story stories | Geschichte Geschichte Geschichten | readable written tellable long
    flower flowers | Blume Blume Blumen | buy colored fresh small_thing
    bag bags | Tasche Tasche Taschen | thing buy colored hollow heavy small_thing sized
    cup cups | Tasse Tasse Tassen | thing stand buy colored washable hollow small_thing sized
    bottle bottles | Flasche Flasche Flaschen | thing stand hollow buy small_thing sized
    lamp lamps | Lampe Lampe Lampen | thing stand buy colored heavy sized
    clock clocks | Uhr Uhr Uhren | thing buy heavy sized
    jacket jackets | Jacke Jacke Jacken | CLOTHES warm_thing
    bench benches | Bank Bank Bänke | furniture stand colored long sized
    city cities | Stadt Stadt Städte | place built sized beautiful_place interesting
    school schools | Schule Schule Schulen | place built sized
    kitchen kitchens | Küche Küche Küchen | place built room sized
    church churches | Kirche Kirche Kirchen | place built beautiful_place dark sized
"""
_NEUTER = """
    child children | Kind Kindes Kinder | YOUNG
    girl girls | Mädchen Mädchens Mädchen | YOUNG | she
    baby babies | Baby Babys Babys | human animate baby
    horse horses | Pferd Pferdes Pferde | animal animate washable farm
    lamb lambs | Lamm Lammes Lämmer | animal animate farm
    chicken chickens | Huhn Huhns Hühner | animal animate farm
    pig pigs | Schwein Schweines Schweine | animal animate farm
    bread | Brot Brotes | food buy fresh warm_thing
    egg eggs | Ei Eies Eier | food buy fresh small_thing
    water | Wasser Wassers | drink hot fresh
    beer | Bier Bieres | drink buy
    meat | Fleisch Fleisches | food buy fresh
    book books | Buch Buches Bücher | thing readable buy heavy long small_thing sized
    picture pictures | Bild Bildes Bilder | thing buy sized
    glass glasses | Glas Glases Gläser | thing stand washable hollow small_thing sized buy
    knife knives | Messer Messers Messer | thing washable small_thing sized buy
    bicycle bicycles | Fahrrad Fahrrads Fahrräder | vehicle buy colored washable sized
    car cars | Auto Autos Autos | vehicle buy colored washable sized
    shirt shirts | Hemd Hemdes Hemden | CLOTHES
    dress dresses | Kleid Kleides Kleider | CLOTHES long
    gift gifts | Geschenk Geschenks Geschenke | thing buy sized
    window windows | Fenster Fensters Fenster | washable sized
    house houses | Haus Hauses Häuser | place built room sized beautiful_place
    room rooms | Zimmer Zimmers Zimmer | place built room sized
    village villages | Dorf Dorfes Dörfer | place built beautiful_place sized
    museum museums | Museum Museums Museen | place built interesting sized
    cinema cinemas | Kino Kinos Kinos | place built sized
    bed beds | Bett Bettes Betten | furniture stand buy warm_thing sized
    sofa sofas | Sofa Sofas Sofas | furniture stand buy colored sized
    shelf shelves | Regal Regals Regale | furniture stand buy colored sized
"""
_CLASSES = {
    "ADULT": "human animate adult",
    "KIN": "human animate adult kin",
    "YOUNG": "human animate young",
    "CLOTHES": "thing clothing buy colored washable sized",
}


def _nouns(gender: str, table: str) -> tuple[Noun, ...]:
    return tuple(_noun(gender, *(column.split() for column in line.split("|"))) for line in table.strip().splitlines())


def _noun(gender: str, english: list[str], german: list[str], classes: list[str], special: Sequence[str] = ()) -> Noun:
    nominative, genitive, *plural = german
    mass = not plural
    return Noun(
        english[0],
        "" if mass else english[1],
        nominative,
        gender,
        genitive,
        "" if mass else plural[0],
        frozenset(" ".join(_CLASSES.get(name, name) for name in classes).split()),
        next((word for word in special if word != "weak"), "it"),
        "weak" in special,
        mass,
    )


NOUNS = _nouns("m", _MASCULINE) + _nouns("f", _FEMININE) + _nouns("n", _NEUTER)
NOUN = {noun.english: noun for noun in NOUNS}
NAMES = {"Anna": "she", "Maria": "she", "Paul": "he", "Peter": "he"}

"""Where things happen and where they lead, in sets that verbs choose from.

A place is "relation noun", the noun in English; `function_words.RELATIONS` has the prepositions. One that stands twice
is drawn twice as often.
"""

_SETS = {
    "area": (
        "in garden, in forest, in city, in school, in kitchen, in church, in house, in room, in village, in museum, "
        "in cinema, at station, behind house, in_front_of house, next_to house, behind school, in_front_of school, "
        "behind church, in_front_of church, in_front_of museum, in_front_of cinema, behind station, "
        "in_front_of station"
    ),
    "seat": "on chair, on bench, on sofa, on bed, at table, at window, in bus, in car",
    "spot": (
        "under table, under bed, under bench, under chair, behind sofa, next_to bed, behind wardrobe, next_to sofa, "
        "next_to table, behind car, in_front_of window, next_to wardrobe"
    ),
    "bed": "in bed, on sofa, on bench",
    "store": (
        "on table, on chair, on shelf, on bench, in wardrobe, under table, under bed, next_to bed, next_to lamp, "
        "on bed, behind sofa, in kitchen, next_to window, on sofa"
    ),
    "park": "in_front_of house, behind house, in_front_of station, next_to church, in_front_of museum, behind school",
    "goal": (
        "into garden, into forest, to city, to school, into kitchen, to church, into house, into room, to village, "
        "to museum, to cinema, to station, to bus, to window"
    ),
    "leap": (
        "onto table, onto chair, onto bench, onto sofa, onto bed, under table, under bed, behind sofa, into garden, "
        "onto wardrobe"
    ),
    "arrival": "at station, in city, in village, at station",
    "meadow": "in garden, in forest, behind house, in_front_of house, behind school, in village",
    "trip": "to city, to village, to school, to station, to museum, to church, to cinema, into forest",
    "corner": "in kitchen, in room, in garden, next_to window, in school, behind house, in_front_of house, in museum",
}
PLACES = {name: tuple(places.split(", ")) for name, places in _SETS.items()}

"""Where things happen and where they lead, in sets that verbs choose from.

A place is "relation noun", the noun in English; `function_words.RELATIONS` has the prepositions. An adverb stands
alone: home, at_home, in_bed, here, there. What stands twice is drawn twice as often.
"""

_SETS = {
    # where people are and what they do there
    "anywhere": (
        "in garden, in garden, in forest, in city, in school, in kitchen, in kitchen, in church, in house, in room, in "
        "village, in museum, in cinema, at station, behind house, in_front_of house, in_front_of school, behind "
        "church, "
        "in_front_of church, in_front_of cinema, in_front_of station, here, there, at_home, in_bed, in bus, in car"
    ),
    "indoors": "in kitchen, in room, in_bed, in house, in garden, at_home, in car, in school",
    "leisure": "in garden, in room, in kitchen, in_front_of house, behind house, in village, at_home, there, in school",
    "workplace": (
        "in garden, in city, in school, in kitchen, in museum, in cinema, at station, in village, at_home, here, "
        "there, "
        "in house, in church, behind house"
    ),
    "playground": (
        "in garden, in room, in kitchen, in_front_of house, behind house, behind school, in forest, at_home, here, "
        "there, in house, next_to house, in_front_of school, in_front_of church"
    ),
    "stay": "in_bed, at_home, at_home, in house, in room, in city, in village, in kitchen, in garden, here, there",
    "standpoint": (
        "at window, in garden, in_front_of house, in_front_of school, in_front_of cinema, in_front_of museum, "
        "in_front_of church, at station, behind house, here, there, in_front_of station, in kitchen, next_to car"
    ),
    "seat": "on chair, on bench, on sofa, on bed, at table, at window, in bus, in car, at table, in garden, in kitchen",
    "bed": "in_bed, on sofa, on bench, in room, at_home, in_bed",
    "table": "in kitchen, at table, in garden, at_home, in_bed, on bench, on sofa, in car, at window",
    "reading": "in_bed, on bench, on sofa, at table, in garden, in kitchen, in bus, at_home, at window, in school",
    "writing": "at table, in kitchen, in garden, at_home, in school, at window, in room",
    "outside": "in city, in bus, in forest, in garden, at station, in cinema, in school, in museum, in village, in car",
    "hideout": "under table, under bed, behind sofa, behind wardrobe, in wardrobe, behind house, in forest, behind car",
    # where animals and things are
    "pet": "under table, on sofa, under bed, next_to bed, in kitchen, behind sofa, in garden, on bench, behind house",
    "tiny": "under bed, under table, behind wardrobe, behind sofa, in kitchen, under sofa, in garden",
    "farm": "behind house, next_to house, in_front_of house, here, there, in garden",
    "tree": "in garden, in forest, in_front_of house, behind house",
    "wild": "in forest, in forest, there, here",
    "shelf": "on table, on shelf, next_to lamp, on bed, on chair, under bed, on sofa, on bench, here, there",
    "tabletop": "on table, on shelf, on table, in kitchen, next_to lamp, next_to window, here, there",
    "closet": "in wardrobe, on bed, on chair, on sofa, here, there, on bench",
    "park": "in_front_of house, behind house, in_front_of station, next_to church, in_front_of museum, behind school",
    "corner": "in kitchen, in room, in garden, next_to window, in house, behind house, in_front_of house",
    # where they lead
    "goal": (
        "into garden, into garden, into kitchen, into house, into room, to city, to school, to church, to village, to "
        "museum, to cinema, to station, to bus, home, home, into forest"
    ),
    "near": (
        "into garden, into kitchen, into house, into room, to school, to city, home, to station, to village, to "
        "church"
    ),
    "walk": "into garden, into house, into kitchen, into room, into forest, home",
    "carried": "into kitchen, into house, into room, into garden, home",
    "leap": "onto table, onto chair, onto bench, onto sofa, onto bed, behind sofa, under table, into garden",
    "romp": "onto bed, onto sofa, onto bench",
    "trip": "to city, to village, to school, to station, to museum, to church, to cinema, into forest, home, to city",
    "arrival": "at station, in city, in village, at station, here",
}
PLACES = {name: tuple(places.split(", ")) for name, places in _SETS.items()}

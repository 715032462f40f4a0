"""The verbs: principal parts in both languages and the frame of each; `principal_parts` says how to read them.

What is done again and again is marked `habit`, what fills a season `season`; `sampler.adverbials` goes by it.
"""

from course_lib.grammar.lexicon.principal_parts import verb as _verb

_INTRANSITIVE = (
    _verb(
        "sleep slept slept", "schlafen schlief geschlafen", "sleeper", change="schläf", location="bed",
        manner="well badly", habit=True,
    ),
    _verb("cry", "weinen", "crier", location="indoors", manner="loudly quietly"),
    _verb("laugh", "lachen", "person_or_baby", location="leisure", manner="loudly"),
    _verb("work", "arbeiten", "worker", location="workplace", manner="slowly alone together", habit=True, season=True),
    _verb(
        "play", "spielen", "player", location="playground", preposition="with mit dative playmate", optional=True,
        manner="alone together quietly", habit=True, season=True,
    ),
    _verb(
        "sing sang sung", "singen sang gesungen", "singer", location="leisure", manner="loudly quietly well together",
        habit=True,
    ),
    _verb("dance", "tanzen", "dancer", location="leisure", manner="well badly together", habit=True),
    _verb(
        "go went gone", "gehen ging gegangen", "person_or_pet", auxiliary="sein", direction="goal", place_needed=True,
        habit=True,
    ),
    _verb(
        "run ran run running", "laufen lief gelaufen", "person_or_pet", change="läuf", auxiliary="sein",
        direction="goal", place_needed=True,
    ),
    _verb(
        "come came come", "kommen kam gekommen", "person_or_pet", auxiliary="sein", direction="near", habit=True,
        season=True,
    ),
    _verb("jump", "springen sprang gesprungen", "jumper", auxiliary="sein", direction="leap", place_needed=True),
    _verb(
        "drive drove driven", "fahren fuhr gefahren", "worker", change="fähr", auxiliary="sein", direction="trip",
        place_needed=True, habit=True, season=True,
    ),
    _verb(
        "stay", "bleiben blieb geblieben", "sleeper", auxiliary="sein", location="stay", place_needed=True,
    ),
    _verb("stand stood stood", "stehen stand gestanden", "standing", location="standpoint", place_needed=True),
    _verb("lie lay lain lying", "liegen lag gelegen", "lying", location="bed", place_needed=True),
    _verb("sit sat sat sitting", "sitzen saß gesessen", "sitter", location="seat", place_needed=True, habit=True),
)

_TRANSITIVE = (
    _verb("put put put putting", "stellen", "person", "movable_stand", direction="store", place_needed=True),
    _verb("lay laid laid", "legen", "person", "movable_lie", direction="store", place_needed=True),
    _verb("see saw seen", "sehen sah gesehen", "person_or_pet", "visible", change="sieh"),
    _verb(
        "eat ate eaten", "essen aß gegessen", "human", "food", change="iss", location="table",
        manner="slowly quickly", habit=True,
    ),
    _verb(
        "eat ate eaten", "fressen fraß gefressen", "eater", "feed", change="friss", manner="slowly quickly", habit=True,
    ),
    _verb(
        "drink drank drunk", "trinken trank getrunken", "human", "drink", location="table", manner="slowly quickly",
        habit=True,
    ),
    _verb(
        "read read read", "lesen las gelesen", "person", "readable", change="lies", location="reading",
        manner="slowly quietly alone", habit=True, season=True,
    ),
    _verb(
        "write wrote written writing", "schreiben schrieb geschrieben", "person", "written", location="writing",
        manner="slowly quickly alone", season=True,
    ),
    _verb(
        "buy bought bought", "kaufen", "person", "goods", preposition="for für accusative acquaintance",
        optional=True, season=True,
    ),
    _verb("look", "suchen", "person", "lost", to="for"),
    _verb("find found found", "finden fand gefunden", "person", "findable"),
    _verb("love", "lieben", "person", "lovable", stative=True),
    _verb("like", "mögen mochte gemocht", "person", "likable", stative=True),
    _verb("know knew known", "kennen kannte gekannt", "person", "known", stative=True),
    _verb("hear heard heard", "hören", "person_or_pet", "audible"),
    _verb("carry", "tragen trug getragen", "worker", "portable", change="träg", direction="indoors", place_needed=True),
    _verb("visit", "besuchen", "person", "visit", habit=True, season=True),
    _verb("open", "öffnen", "person", "openable", manner="slowly carefully quietly"),
    _verb("wash", "waschen wusch gewaschen", "person", "washable", change="wäsch", manner="carefully", habit=True),
    _verb("clean", "putzen", "person", "cleanable", manner="carefully quickly together", habit=True),
    _verb("lose lost lost", "verlieren verlor verloren", "person", "losable", location="outside"),
    _verb("need", "brauchen", "person", "needs", stative=True),
    _verb("have had had", "haben hatte gehabt", "person", "own", stative=True),
    _verb(
        "forget forgot forgotten forgetting", "vergessen vergaß vergessen", "person", "forgettable",
        change="vergiss",
    ),
    _verb(
        "repair", "reparieren reparierte repariert", "worker", "repairable", manner="quickly carefully alone together",
        season=True,
    ),
    _verb("paint", "malen", "person", "motif", manner="alone", season=True),
    _verb(
        "paint", "streichen strich gestrichen", "worker", "paintable", manner="slowly carefully together", season=True,
    ),
)

_SEPARABLE = (
    _verb(
        "get got gotten getting", "auf|stehen stand aufgestanden", "human_or_dog", particle="up", auxiliary="sein",
        manner="slowly quickly", habit=True,
    ),
    _verb("wake woke woken", "auf|wachen", "sleeper", particle="up", auxiliary="sein", habit=True),
    _verb(
        "fall fell fallen", "ein|schlafen schlief eingeschlafen", "sleeper", particle="asleep", change="schläf",
        auxiliary="sein", location="bed", manner="quickly",
    ),
    _verb("arrive", "an|kommen kam angekommen", "traveler", auxiliary="sein", location="arrival"),
    _verb("call", "an|rufen rief angerufen", "person", "reachable", habit=True),
    _verb("pick", "ab|holen", "worker", "fetched", particle="up", habit=True),
    _verb(
        "tidy", "auf|räumen", "person", "tidy", particle="up", manner="quickly slowly alone together", habit=True,
    ),
    _verb("wipe", "ab|wischen", "person", "wipeable", manner="quickly carefully", habit=True),
    _verb("close", "zu|machen", "person", "closable", manner="quietly carefully quickly"),
    _verb("invite", "ein|laden lud eingeladen", "person", "reachable", change="läd", season=True),
    _verb("throw threw thrown", "weg|werfen warf weggeworfen", "person", "rubbish", particle="away", change="wirf"),
    _verb("bring brought brought", "mit|bringen brachte mitgebracht", "person", "presentable", particle="along"),
    _verb(
        "come came come", "zurück|kommen kam zurückgekommen", "returner", particle="back", auxiliary="sein",
        season=True,
    ),
    _verb(
        "put put put putting", "an|ziehen zog angezogen", "person", "garment", particle="on",
        manner="quickly slowly",
    ),
    _verb("put put put putting", "auf|setzen", "person", "headgear", particle="on"),
    _verb("listen", "zu|hören", "person", None, "speaker", to="to"),
)

_DATIVE = (
    _verb("help", "helfen half geholfen", "person", None, "acquaintance", change="hilf", habit=True, season=True),
    _verb("thank", "danken", "person", None, "reachable"),
    _verb(
        "follow", "folgen", "person_or_pet", None, "followed", auxiliary="sein", direction="walk",
        manner="slowly quietly",
    ),
    _verb("answer", "antworten", "person", None, "reachable", manner="quietly quickly"),
    _verb("belong", "gehören", "ownable", None, "owner", to="to", stative=True),
    _verb("give gave given", "geben gab gegeben", "person", "giveable", "acquaintance", change="gib"),
    _verb("show showed shown", "zeigen", "person", "showable", "acquaintance"),
    _verb("send sent sent", "schicken", "person", "sendable", "reachable", season=True),
    _verb("tell told told", "erzählen", "person", "tellable", "acquaintance", habit=True),
    _verb("bring brought brought", "bringen brachte gebracht", "person", "bringable", "acquaintance"),
    _verb("lend lent lent", "leihen lieh geliehen", "person", "lendable", "borrower"),
)

_PREPOSITIONAL = (
    _verb(
        "wait", "warten", "person_or_dog", preposition="for auf accusative awaited", optional=True,
        location="standpoint",
    ),
    _verb("think thought thought", "denken dachte gedacht", "person", preposition="of an accusative thought"),
    _verb(
        "talk", "sprechen sprach gesprochen", "person", change="sprich", preposition="to mit dative speaker",
        manner="quietly loudly",
    ),
    _verb("dream", "träumen", "person", preposition="of von dative dreamt", habit=True),
    _verb("sit sat sat sitting", "setzen", "person", particle="down", reflexive=True, direction="seat"),
    _verb("hurry", "beeilen", "person", reflexive=True),
    _verb("rest", "aus|ruhen", "sleeper", reflexive=True, location="bed", habit=True),
    _verb("hide hid hidden", "verstecken", "hider", reflexive=True, location="hideout"),
    _verb(
        "wash", "waschen wusch gewaschen", "person", reflexive=True, english_reflexive=True, change="wäsch",
        manner="quickly", habit=True,
    ),
    _verb("remember", "erinnern", "person", reflexive=True, stative=True, preposition="- an accusative memorable"),
    _verb(
        "look", "freuen", "person", particle="forward", reflexive=True, stative=True,
        preposition="to auf accusative anticipated",
    ),
)

_CLAUSAL = (
    _verb("say said said", "sagen", "person", clause="that"),
    _verb("believe", "glauben", "person", stative=True, clause="that"),
    _verb("hope", "hoffen", "person", stative=True, clause="that"),
    _verb("know knew known", "wissen wusste gewusst", "person", stative=True, clause="that whether"),
    _verb("ask", "fragen", "person", clause="whether"),
)

BE = _verb("be was been", "sein war gewesen", "anything", auxiliary="sein", stative=True)
RAIN = _verb("rain", "regnen", "weather")
SNOW = _verb("snow", "schneien", "weather")
VERBS = _INTRANSITIVE + _TRANSITIVE + _SEPARABLE + _DATIVE + _PREPOSITIONAL + _CLAUSAL
ALL_VERBS = VERBS + (BE, RAIN, SNOW)
VERB = {verb.name: verb for verb in ALL_VERBS}

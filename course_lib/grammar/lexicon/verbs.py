"""The verbs: principal parts in both languages and the frame of each; `principal_parts` says how to read them."""

from course_lib.grammar.lexicon.principal_parts import verb as _verb

_INTRANSITIVE = (
    _verb(
        "sleep slept slept", "schlafen schlief geschlafen", "animate", change="schläf", location="bed spot",
        manner="well badly",
    ),
    _verb("cry", "weinen", "young_or_baby", location="area", manner="loudly quietly"),
    _verb("laugh", "lachen", "human", location="area", manner="loudly"),
    _verb("work", "arbeiten", "adult", location="area", manner="slowly alone together"),
    _verb(
        "play", "spielen", "player", location="area", preposition="with mit dative playmate", optional=True,
        manner="alone together quietly",
    ),
    _verb("sing sang sung", "singen sang gesungen", "singer", location="area", manner="loudly quietly well together"),
    _verb("dance", "tanzen", "dancer", location="area", manner="well badly together"),
    _verb("go went gone", "gehen ging gegangen", "mobile", auxiliary="sein", direction="goal", place_needed=True),
    _verb(
        "run ran run running", "laufen lief gelaufen", "mobile", change="läuf", auxiliary="sein", direction="goal",
        place_needed=True,
    ),
    _verb("come came come", "kommen kam gekommen", "mobile", auxiliary="sein", direction="goal"),
    _verb(
        "jump", "springen sprang gesprungen", "animal_or_young", auxiliary="sein", direction="leap", place_needed=True
    ),
    _verb(
        "drive drove driven", "fahren fuhr gefahren", "adult", change="fähr", auxiliary="sein", direction="trip",
        place_needed=True,
    ),
    _verb("stay", "bleiben blieb geblieben", "animate", auxiliary="sein", location="area bed", place_needed=True),
    _verb("stand stood stood", "stehen stand gestanden", "standing", location="area", place_needed=True),
    _verb("lie lay lain lying", "liegen lag gelegen", "lying", location="bed spot", place_needed=True),
    _verb("sit sat sat sitting", "sitzen saß gesessen", "animate", location="seat area", place_needed=True),
)

_TRANSITIVE = (
    _verb("put put put putting", "stellen", "reader", "movable_stand", direction="store", place_needed=True),
    _verb("lay laid laid", "legen", "reader", "movable_lie", direction="store", place_needed=True),
    _verb("see saw seen", "sehen sah gesehen", "animate", "anything", change="sieh", location="area"),
    _verb(
        "eat ate eaten", "essen aß gegessen", "human", "food", change="iss", location="area", manner="slowly quickly"
    ),
    _verb(
        "eat ate eaten", "fressen fraß gefressen", "eater", "feed", change="friss", location="area",
        manner="slowly quickly",
    ),
    _verb("drink drank drunk", "trinken trank getrunken", "human", "drink", location="area", manner="slowly quickly"),
    _verb(
        "read read read", "lesen las gelesen", "reader", "readable", change="lies", location="area",
        manner="slowly quietly alone",
    ),
    _verb(
        "write wrote written writing", "schreiben schrieb geschrieben", "reader", "written", location="area",
        manner="slowly quickly alone",
    ),
    _verb("buy bought bought", "kaufen", "reader", "buy", preposition="for für accusative human", optional=True),
    _verb("look", "suchen", "animate", "lost", to="for", location="area"),
    _verb("find found found", "finden fand gefunden", "animate", "lost", location="area"),
    _verb("love", "lieben", "reader", "lovable", stative=True),
    _verb("like", "mögen mochte gemocht", "human", "anything", stative=True),
    _verb("know knew known", "kennen kannte gekannt", "reader", "known", stative=True),
    _verb("hear heard heard", "hören", "animate", "audible", location="area"),
    _verb("carry", "tragen trug getragen", "adult", "portable", change="träg", direction="goal", manner="carefully"),
    _verb("visit", "besuchen", "reader", "visit"),
    _verb("open", "öffnen", "reader", "openable", manner="slowly carefully quietly"),
    _verb("wash", "waschen wusch gewaschen", "reader", "washable", change="wäsch", manner="carefully quickly"),
    _verb("lose lost lost", "verlieren verlor verloren", "reader", "losable", location="area"),
    _verb("need", "brauchen", "reader", "needs", stative=True),
    _verb("have had had", "haben hatte gehabt", "reader", "own", stative=True),
    _verb(
        "forget forgot forgotten forgetting", "vergessen vergaß vergessen", "reader", "known_thing", change="vergiss"
    ),
    _verb(
        "repair", "reparieren reparierte repariert", "adult", "repairable", manner="quickly carefully alone together"
    ),
    _verb("paint", "malen", "reader", "paintable", location="area", manner="slowly alone"),
)

_SEPARABLE = (
    _verb(
        "get got gotten getting", "auf|stehen stand aufgestanden", "animate", particle="up", auxiliary="sein",
        manner="slowly quickly",
    ),
    _verb("wake woke woken", "auf|wachen", "animate", particle="up", auxiliary="sein"),
    _verb(
        "fall fell fallen", "ein|schlafen schlief eingeschlafen", "animate", particle="asleep", change="schläf",
        auxiliary="sein", location="bed spot", manner="quickly",
    ),
    _verb("arrive", "an|kommen kam angekommen", "traveler", auxiliary="sein", location="arrival"),
    _verb("call", "an|rufen rief angerufen", "reader", "human_not_baby"),
    _verb("pick", "ab|holen", "reader", "fetched", particle="up"),
    _verb("tidy", "auf|räumen", "reader", "tidy", particle="up", manner="quickly slowly alone together"),
    _verb("close", "zu|machen", "reader", "closable", manner="quietly carefully quickly"),
    _verb("invite", "ein|laden lud eingeladen", "reader", "human_not_baby", change="läd"),
    _verb("throw threw thrown", "weg|werfen warf weggeworfen", "reader", "thing", particle="away", change="wirf"),
    _verb("bring brought brought", "mit|bringen brachte mitgebracht", "reader", "bringable", particle="along"),
    _verb("come came come", "zurück|kommen kam zurückgekommen", "mobile", particle="back", auxiliary="sein"),
    _verb(
        "put put put putting", "an|ziehen zog angezogen", "reader", "clothing", particle="on", manner="quickly slowly"
    ),
    _verb("listen", "zu|hören", "reader", None, "human_not_baby", to="to"),
)

_DATIVE = (
    _verb("help", "helfen half geholfen", "reader", None, "human", change="hilf"),
    _verb("thank", "danken", "reader", None, "human_not_baby"),
    _verb("follow", "folgen", "mobile", None, "animate", auxiliary="sein", direction="goal", manner="slowly quietly"),
    _verb("answer", "antworten", "reader", None, "human_not_baby", manner="quietly quickly"),
    _verb("belong", "gehören", "ownable", None, "human", to="to", stative=True),
    _verb("give gave given", "geben gab gegeben", "reader", "giveable", "human", change="gib"),
    _verb("show showed shown", "zeigen", "reader", "showable", "human"),
    _verb("send sent sent", "schicken", "reader", "sendable", "human_not_baby"),
    _verb("tell told told", "erzählen", "reader", "tellable", "human"),
    _verb("bring brought brought", "bringen brachte gebracht", "reader", "bringable", "human"),
    _verb("lend lent lent", "leihen lieh geliehen", "reader", "lendable", "human_not_baby"),
)

_PREPOSITIONAL = (
    _verb("wait", "warten", "animate", preposition="for auf accusative awaited", location="area"),
    _verb("think thought thought", "denken dachte gedacht", "reader", preposition="of an accusative thought"),
    _verb(
        "talk", "sprechen sprach gesprochen", "human_not_baby", change="sprich", preposition="to mit dative human",
        location="area", manner="quietly loudly",
    ),
    _verb("dream", "träumen", "human_not_baby", preposition="of von dative thought"),
    _verb("sit sat sat sitting", "setzen", "human", particle="down", reflexive=True, direction="seat"),
    _verb("hurry", "beeilen", "reader", reflexive=True),
    _verb("rest", "aus|ruhen", "animate", reflexive=True, location="bed"),
    _verb("hide hid hidden", "verstecken", "animal_or_young", reflexive=True, location="spot"),
    _verb(
        "wash", "waschen wusch gewaschen", "reader", reflexive=True, english_reflexive=True, change="wäsch",
        manner="quickly",
    ),
    _verb(
        "remember", "erinnern", "human_not_baby", reflexive=True, stative=True, preposition="- an accusative thought"
    ),
    _verb("look", "freuen", "reader", particle="forward", reflexive=True, preposition="to auf accusative awaited_gift"),
)

_CLAUSAL = (
    _verb("say said said", "sagen", "human_not_baby", clause="that"),
    _verb("believe", "glauben", "human_not_baby", stative=True, clause="that"),
    _verb("hope", "hoffen", "human_not_baby", stative=True, clause="that"),
    _verb("know knew known", "wissen wusste gewusst", "human_not_baby", stative=True, clause="that whether"),
    _verb("ask", "fragen", "human_not_baby", clause="whether"),
)

BE = _verb("be was been", "sein war gewesen", "anything", auxiliary="sein", stative=True)
RAIN = _verb("rain", "regnen", "weather")
SNOW = _verb("snow", "schneien", "weather")
VERBS = _INTRANSITIVE + _TRANSITIVE + _SEPARABLE + _DATIVE + _PREPOSITIONAL + _CLAUSAL
ALL_VERBS = VERBS + (BE, RAIN, SNOW)
VERB = {verb.name: verb for verb in ALL_VERBS}

"""Scripts, third part: what happens at the same time, and what happens whenever, or if, something else does.

`sampler.scripts` says how to read a line.
"""

SCENES = (
    # at the same time
    (
        "while and",
        """
    A:worker arbeiten | B:player/young spielen
    A:worker arbeiten @in.garden | B:person/pet schlafen
    A:worker arbeiten @in.kitchen/in.garden | B:young spielen @in.room/behind.house
    A:person lesen O:newspaper/book | B:kin/pet/young schlafen
    A:person lesen O:book | B:person schreiben P:letter/story
    A:worker aufräumen O:kitchen/room/house | B:person sich_ausruhen
    A:worker aufräumen O:kitchen | B:worker arbeiten @in.garden
    A:worker putzen O:window/kitchen | B:worker streichen P:bench/chair/table/shelf
    A:worker putzen O:window/kitchen | B:sleeper schlafen
    A:worker reparieren O:bicycle/car/chair/lamp/clock | B:young/pet spielen
    A:worker reparieren O:bicycle/car/chair/lamp | B:worker streichen P:bench/house/shelf
    A:person abwischen O:table | B:person waschen P:cup/glass
    A:worker abwischen O:table/shelf/bench | B:worker aufräumen P:room/wardrobe
    A:person waschen O:cup/glass/shirt/dress | B:person aufräumen P:room/kitchen/wardrobe
    A:person singen | B:person tanzen
    A:person essen O:soup/cake/bread/meat | B:person trinken P:tea/coffee/milk/water
    A:person trinken O:tea/coffee | B:young spielen
    A:pet schlafen @under.table/on.sofa/behind.house | B:human essen O:soup/meat/cake/bread
    A:pet schlafen @under.table/on.sofa | B:worker arbeiten
    A:dog/cat sitzen @under.table/in_front_of.house | B:human essen O:soup/meat/cheese/egg
    A:cat schlafen | B:dog fressen O:meat
    A:dog schlafen | B:cat/bird/horse fressen O:meat/bread/apple
    A:baby/child schlafen | B:mother/father/aunt/grandmother/sister/brother lesen O:book/newspaper
    A:baby/child schlafen | B:worker arbeiten
    A:baby weinen | B:boy/girl/sister/brother lachen
    A:girl/boy/child malen O:picture | B:girl/boy/child/teacher lesen P:book/story
    A:worker tragen O:bag/chair/lamp @into.house | B:worker öffnen P:window
    """,
    ),
    (
        "while",
        """
    A:person warten @at.station/in_front_of.cinema | A lesen O:newspaper/book/letter
    A:person trinken O:tea/coffee/milk | A lesen P:newspaper/book/letter
    A:person singen | A arbeiten
    A:person singen | A aufräumen O:kitchen/room/garden
    A:worker singen | A streichen O:bench/kitchen/chair/house
    A:person warten O:bus | A lesen P:newspaper/book/letter
    A:person warten O:bus | A essen P:apple/banana/bread
    A:person träumen B:kin/horse/garden/forest | A schlafen
    A:person anrufen B:kin/doctor/neighbor | B arbeiten
    A:person lachen | A lesen O:letter/story/book
    """,
    ),
    # when one thing happens, so does the other
    (
        "when_past",
        """
    A:sleeper schlafen ^ing | B:kin/teacher/doctor/neighbor kommen @home/into.room/into.house
    A:person lesen O:book/newspaper/letter ^ing | B:kin/neighbor/teacher/doctor anrufen A
    A:person essen O:soup/cake/bread/egg ^ing | B:kin/neighbor/doctor/teacher anrufen A
    A:person essen ^ing O:soup/cake/bread/egg | B:kin/neighbor/doctor/teacher kommen @home/into.kitchen
    A:worker arbeiten @in.garden/in.kitchen ^ing | B:kin/neighbor/doctor/teacher anrufen A
    A:young/pet spielen @in.garden ^ing | B:mother/father/aunt/grandmother/teacher zurückkommen
    A:person schreiben ^ing O:letter | A hören B:baby/dog/cat/child
    A:person finden O:key/ball/hat/book/letter | A aufräumen P:room/kitchen/house/wardrobe
    A:person verlieren O:key/hat/bag/ball/coat | A laufen @to.bus/to.station/home
    A:person vergessen O:bag/hat/key/coat | A gehen @home
    A:person sehen B:bear/lion/bird | A arbeiten ^ing @in.forest
    A:person finden O:letter/picture | A öffnen P:book/bag/wardrobe
    """,
    ),
    (
        "when when_past",
        """
    A:human lachen | B:bear/bird/child/baby tanzen
    A:baby/child lachen | B:mother/father/sister/brother/aunt/grandmother singen
    A:person tanzen | B:person singen
    A:person aufwachen | B:baby weinen
    A:sleeper aufwachen | A hören B:dog/bird/bus/clock/neighbor/cat
    A:baby/child weinen | B:mother/father/aunt/grandmother gehen @home/to.city/to.station/to.church
    A:child/boy/girl weinen | B:brother/sister/boy/girl wegwerfen O:ball/book/hat/picture
    A:person =happy | B:kin kommen
    A:person =happy | B:kin/teacher/neighbor anrufen A
    A:person =happy | B:kin/neighbor besuchen A
    A:person =happy | B:kin/neighbor/student/teacher helfen A
    A:person =sad | B:kin gehen @home
    A:person mitbringen O:cake/flower/gift/chocolate | A besuchen B:kin/neighbor/teacher
    A:person öffnen O:window | A aufstehen
    A:person lachen | A lesen O:story/letter/book
    A:person singen | A =happy
    A:mouse/cat sich_verstecken @under.bed/behind.sofa/behind.wardrobe | B:dog kommen @into.room/into.house
    A:cat/dog kommen @into.kitchen/into.room | B:human essen O:meat/cheese/soup/bread
    A:cat/dog springen @onto.bed/onto.sofa | A =tired
    A:dog/cat kommen @home | A =hungry
    A:dog laufen @into.garden | A hören B:cat/bird/child
    A:child/baby weinen | A hören B:dog/bus
    A:child/baby lachen | A sehen B:dog/cat/horse
    A:person aufsetzen O:hat | A gehen @into.garden/home
    A:person anziehen O:coat/jacket | A gehen @into.garden/home
    A:teacher =happy | B:student/child/boy/girl lesen O:book/story
    """,
    ),
    (
        "when if",
        """
    A:person anrufen B:kin | A ankommen @at.station/in.city/in.village
    A:worker abholen B:kin/doctor | B ankommen @at.station
    A:person besuchen B:kin/doctor | A sein @in.city/in.village
    A:person besuchen O:museum/church | A sein @in.city/in.village
    A:person gehen @to.cinema/to.museum | it regnen
    A:sleeper bleiben @at_home/in_bed | A =sick/tired
    A:person laufen @home | it regnen
    A:young/pet spielen @in.house/in.room | it regnen/schneien
    A:human trinken O:milk/tea/water | A =sick
    A:person helfen B:kin/neighbor | B aufräumen O:house/garden/kitchen
    A:person helfen B:kin/neighbor/teacher | B =sick/tired
    A:mother/father/aunt/grandmother geben B:baby/child O:milk/water | B weinen
    A:mother/father/aunt/grandmother singen | B:baby/child weinen
    A:person kaufen O:bread/milk/egg | A fahren @to.city/to.village
    A:person zumachen O:window | A gehen @home/to.school
    """,
    ),
)

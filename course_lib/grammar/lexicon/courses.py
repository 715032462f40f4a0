"""Scripts, second part: what comes after what, what happens at the same time, what stands in contrast.

`sampler.scripts` says how to read a line.
"""

COURSES = (
    # one thing after the other
    ("and before", """
    A:person waschen O:apple/tomato | A essen O
    A:person waschen O:cup/glass | A stellen O @on.table/on.shelf
    A:person waschen O:shirt/dress/jacket | A legen O @in.wardrobe/on.bed/on.chair
    A:person waschen O:dress/shirt/jacket/coat | A anziehen O
    A:person lesen O:letter/newspaper | A wegwerfen O
    A:person lesen O:book/newspaper/letter | A legen O @on.table/on.shelf/next_to.lamp
    A:person öffnen O:letter | A lesen O
    A:person schreiben O:letter | A schicken B:kin O
    A:person schreiben O:letter/story | A zeigen B:kin/teacher/neighbor O
    A:person aufstehen | A sich_waschen
    A:person aufwachen | A aufstehen
    A:person aufstehen | A trinken O:tea/coffee/water/milk
    A:person aufstehen | A öffnen O:window
    A:person lesen O:book/story/letter | A einschlafen
    A:person zumachen O:window | A einschlafen
    A:person zumachen O:window | A gehen @home
    A:person anziehen O:coat/jacket | A gehen @into.garden/home
    A:person aufsetzen O:hat | A gehen @into.garden/home
    A:person aufräumen O:kitchen/room/house | A einladen B:kin/neighbor/teacher/student
    A:person aufräumen O:kitchen/room | A lesen P:book/newspaper
    A:person putzen O:window/kitchen | A trinken P:tea/coffee/milk/water
    A:worker anrufen B:kin/doctor/teacher | A besuchen B
    A:worker reparieren O:bicycle/car/lamp/clock | A leihen B:borrower O
    A:worker reparieren O:lamp/clock | A stellen O @on.table/on.shelf
    A:worker reparieren O:chair/bench/table | A streichen O
    A:person trinken O:coffee/tea/milk | A lesen P:newspaper/book/letter
    A:person sich_waschen | A anziehen O:shirt/dress/jacket
    """),
    ("and", """
    A:person kaufen O:bread/cheese/apple/banana/cake/chocolate/egg | A essen O
    A:person kaufen O:book/newspaper | A lesen O
    A:person kaufen O:flower/gift/book/cake/picture/chocolate | A geben B:acquaintance O
    A:person kaufen O:book/picture/gift/flower | A schicken B:kin O
    A:person kaufen O:apple/milk/bread/cake/newspaper/flower | A bringen B:kin/neighbor/child O
    A:person kaufen O:dress/coat/jacket/shirt | A anziehen O
    A:person kaufen O:hat | A aufsetzen O
    A:person finden O:hat | A aufsetzen O
    A:person suchen O:key/letter/ball/hat/bag/book/knife/newspaper/dog/cat/jacket | A finden O
    A:person finden O:key/letter/ball/hat/bag/book/knife/jacket/picture | A geben B:acquaintance O
    A:person finden O:key/ball/hat/book/bag/letter @under.bed/behind.sofa/under.table/behind.wardrobe | A geben B:acquaintance O
    A:person finden O:ball/book/hat/bag @in.garden/in.bus/in.forest/on.bench/in_front_of.house | A bringen B:child/boy/girl/teacher/neighbor O
    A:person finden O:letter/newspaper/book @on.table/on.bench/under.bed/in.wardrobe | A lesen O
    A:person finden O:apple/banana/cake/chocolate/cheese @in.kitchen/on.table/on.shelf | A essen O
    A:person malen O:picture | A zeigen B:acquaintance O
    A:person malen O:picture | A schicken B:kin O
    A:person schreiben O:letter | A vergessen O
    A:person kommen @home | A essen O:food
    A:person kommen @home | A sich_ausruhen
    A:person kommen @home | A anrufen B:kin/doctor/neighbor
    A:person gehen @into.kitchen | A trinken O:water/milk/tea/coffee
    A:person gehen @into.kitchen | A essen O:apple/banana/cake/soup/egg/bread
    A:person gehen @into.garden | A arbeiten
    A:young/pet laufen @into.garden | A spielen
    A:person gehen @to.window | A öffnen O:letter
    A:person gehen @into.forest | A sehen B:bear/bird/lion
    A:person gehen @to.museum | A sehen O:picture
    A:person sich_setzen @on.bench/on.sofa/at.table/on.chair | A lesen O:book/newspaper/letter/story
    A:person sich_setzen @on.bench/on.sofa/at.table/on.chair | A trinken O:tea/coffee/water/milk
    A:person sich_setzen @at.table | A essen O:cake/soup/bread/egg/tomato
    A:person sich_setzen @at.table | A schreiben O:letter/story
    A:worker abholen B:kin/child/student | A fahren @home/to.city/to.cinema
    A:worker abholen O:letter/gift/newspaper | A öffnen O
    A:worker abholen O:letter/newspaper | A lesen O
    A:person anrufen B:kin/teacher/neighbor/doctor | A einladen B
    A:person besuchen B:kin/neighbor | A bringen B O:cake/flower/gift/soup/book
    A:person besuchen B:kin/neighbor | A helfen B
    A:person sehen B:teacher/neighbor/doctor/student | A folgen B
    A:person sehen B:dog/cat | A folgen B
    A:dog sehen B:cat | A folgen B
    A:cat/dog sehen B:child/boy/girl | A folgen B
    A:cat/dog finden O:meat/cheese @in.kitchen/under.table/on.table | A fressen O
    A:mouse finden O:cheese/bread @in.kitchen/under.table/behind.wardrobe | A fressen O
    A:pig/horse finden O:apple @in.garden/behind.house | A fressen O
    A:bird/chicken/duck finden O:bread @in.garden/behind.house/in_front_of.house | A fressen O
    A:child finden O:banana/apple/cake/chocolate @on.table/in.kitchen/on.shelf | A essen O
    A:child/baby trinken O:milk/water | A einschlafen
    A:child finden O:hat @under.bed/on.chair/behind.sofa | A aufsetzen O
    A:child finden O:ball @under.bed/behind.sofa/in.garden | A bringen B:boy/girl/teacher/mother/father O
    A:child öffnen O:letter | A lesen O
    A:dog/cat gehen @into.kitchen/into.room/into.garden | A einschlafen
    A:person mitbringen O:gift/flower/book/cake | A geben B:acquaintance O
    A:person tragen O:bag @into.kitchen/into.house | A öffnen O
    A:person tragen O:chair/bench/lamp @into.garden/into.house | A reparieren O
    A:person stellen O:cake/soup @on.table | A essen O
    A:person stellen O:bottle @on.table | A öffnen O
    A:worker stellen O:bicycle/chair/lamp @in_front_of.house/into.garden/behind.house | A reparieren O
    A:worker stellen O:chair @into.garden/behind.house | A streichen O
    A:person legen O:letter/key/book/newspaper @on.table/on.shelf/next_to.lamp/on.bed | A vergessen O
    A:person legen O:bag/letter/gift @on.table/on.chair/on.bed/on.bench | A öffnen O
    A:person helfen B:neighbor/man/woman/teacher/aunt/grandmother | B danken A
    A:person einladen B:kin/teacher/neighbor/doctor | B kommen
    A:person schreiben C:letter | B:kin antworten A
    A:person suchen B:cat/dog | B zurückkommen
    """),
    # what one would not expect
    ("but_not", """
    A:person suchen O:key/letter/ball/hat/bag/book/knife/newspaper/dog/cat/jacket | A finden O
    A:person öffnen O:letter | A lesen O
    A:person kaufen O:book/newspaper | A lesen O
    A:person kaufen O:dress/coat/jacket/shirt | A anziehen O
    A:person kaufen O:cake/cheese/apple/banana/egg | A essen O
    A:person lesen O:letter/newspaper | A wegwerfen O
    A:person schreiben O:letter | A schicken B:kin/teacher/doctor O
    A:person malen O:picture | A zeigen B:acquaintance O
    A:person waschen O:apple/tomato | A essen O
    A:sleeper aufwachen | A aufstehen
    A:person anrufen B:kin/neighbor/teacher/doctor/student | B antworten A
    A:person warten B:doctor/teacher/student/kin/neighbor | B kommen
    A:person einladen B:kin/teacher/neighbor/doctor/student | B kommen
    A:person helfen B:neighbor/student/man/woman/boy/girl/aunt | B danken A
    A:person sehen B:teacher/neighbor/doctor/student | B sehen A
    A:person lieben B:woman/man/doctor/teacher/queen/student | B lieben A
    A:person schicken B:kin/teacher/neighbor O:letter | B antworten A
    A:person suchen B:cat/dog | B zurückkommen
    A:worker kaufen O:dress/coat/hat/bicycle/book B:daughter/son/sister/brother/mother/aunt/grandmother | B mögen O
    A:person lieben B:dog/cat | B folgen A
    """),
    ("but", """
    A:person verlieren O:key/letter/ball/hat/bag/book/coat | A finden O
    A:person suchen B:cat/dog | B sich_verstecken @under.bed/behind.sofa/in.garden/under.table
    A:person schlafen +want | A arbeiten +must
    A:young/student spielen +want | A arbeiten +must
    A:young/student spielen +want @in.garden | A aufräumen O:room +must
    A:person bleiben +want @in_bed | A aufstehen +must
    A:person gehen +want @home | A arbeiten +must
    A:person kaufen +want O:bicycle/car/lamp/coat/dress/house/picture/sofa/bed/table/clock/jacket | O =expensive
    A:person lesen +want O:book/newspaper/letter/story | A =tired
    A:person lesen +want O:book/newspaper/story | O =boring
    A:person essen +want O:cake/cheese/egg/bread/tomato | O =old
    A:person essen +want O:soup/egg/cake | O =hot
    A:person trinken +want O:coffee/tea/milk | O =cold/hot
    A:person besuchen +want B:kin/doctor/teacher | B =sick
    A:person tragen +want O:bag/clock/lamp | O =heavy
    A:person anziehen +want O:coat/jacket/shirt/dress | O =dirty
    A:player spielen +want @in.garden | it regnen
    A:person arbeiten +want @in.garden | it regnen/schneien
    A:person singen +can | A tanzen +can not
    A:child/boy/girl lesen +can P:book/newspaper | A schreiben O:letter/story +can not
    A:person singen ~well | A tanzen ~badly
    A:person tanzen ~well | A singen ~badly
    A:person kennen B:neighbor/teacher/doctor/queen/woman/man | A mögen not B
    A:person kennen O:village/city/museum/forest/book/story | A mögen not O
    A:person haben O:dog | A haben not P:cat
    A:person haben O:cat | A haben not P:dog
    A:person haben O:bicycle | A haben not P:car
    A:person haben O:house | A haben not P:garden
    A:person haben O:brother | A haben not P:sister
    A:person brauchen O:car/bicycle/table/bed/lamp/coat/book/clock | O =expensive
    A:person suchen O:doctor/teacher/neighbor | O sein @at_home
    O:dress/coat/jacket/hat/picture/house/lamp/sofa/table/bicycle/garden =old | O =beautiful
    O:dress/coat/jacket/hat/picture/house/lamp/sofa/table/car/bicycle =expensive | O =beautiful
    O:house/garden/room/kitchen/village/church/city =small | O =beautiful
    O:house/room/kitchen/bed/sofa/bicycle/cup/glass =old | O =clean
    O:apple/banana/tomato/cake =small | O =sweet/fresh
    O:coat/jacket =old/cheap | O =warm
    O:museum/church/city =small | O =interesting
    O:book/letter/story =long | O =interesting
    O:book/bag/picture/lamp =heavy | O =small/beautiful
    O:man/woman/neighbor/doctor/teacher/aunt/grandmother/mother/father/queen =old | O =strong/happy/clever
    O:dog/horse/bear/lion/man/woman/grandmother =old | O =strong/clever
    O:dog/cat/bird/horse/lamb =small | O =clever/strong/friendly
    O:man/woman/queen/doctor/neighbor =rich | O =sad/sick
    O:student/girl/boy/child/teacher/doctor =young | O =clever
    O:person =tired/sick/hungry | O =happy
    O:person =sad/happy | O =hungry/tired
    O:grandmother/aunt/mother/father =sick | O arbeiten +must
    """),
    # at the same time
    ("while and", """
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
    """),
    ("while", """
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
    """),
    # when one thing happens, so does the other
    ("when_past", """
    A:sleeper schlafen ^ing | B:kin/teacher/doctor/neighbor kommen @home/into.room/into.house
    A:person lesen O:book/newspaper/letter ^ing | B:kin/neighbor/teacher/doctor anrufen A
    A:person essen O:soup/cake/bread/egg ^ing | B:kin/neighbor/doctor/teacher anrufen A
    A:person essen ^ing O:soup/cake/bread/egg | B:kin/neighbor/doctor/teacher kommen @home/into.kitchen
    A:worker arbeiten @in.garden/in.kitchen ^ing | B:kin/neighbor/doctor/teacher anrufen A
    A:young/pet spielen @in.garden ^ing | B:mother/father/aunt/grandmother/teacher zurückkommen
    A:person lesen ^ing O:book/newspaper | A einschlafen
    A:person schreiben ^ing O:letter | A hören B:baby/dog/cat/child
    A:person finden O:key/ball/hat/book/letter | A aufräumen P:room/kitchen/house/wardrobe
    A:person verlieren O:key/hat/bag/ball/coat | A laufen @to.bus/to.station/home
    A:person vergessen O:bag/hat/key/coat | A gehen @home
    A:person sehen B:bear/lion/bird | A arbeiten ^ing @in.forest
    A:person finden O:letter/picture | A öffnen P:book/bag/wardrobe
    """),
    ("when when_past", """
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
    A:mouse/cat sich_verstecken @under.bed/behind.sofa/behind.wardrobe/under.table | B:dog kommen @into.room/into.house/into.kitchen
    A:cat/dog kommen @into.kitchen/into.room | B:human essen O:meat/cheese/soup/bread
    A:cat/dog springen @onto.bed/onto.sofa | A =tired
    A:dog/cat kommen @home | A =hungry
    A:dog laufen @into.garden | A hören B:cat/bird/child
    A:child/baby weinen | A hören B:dog/bear/lion
    A:child/baby lachen | A sehen B:dog/cat/horse
    A:person aufsetzen O:hat | A gehen @into.garden/home
    A:person anziehen O:coat/jacket | A gehen @into.garden/home
    A:teacher =happy | B:student/child/boy/girl lesen O:book/story
    """),
    ("when if", """
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
    """),
    # side by side
    ("and but", """
    A:person =happy | B:person =sad
    A:person =tired | B:person =hungry
    A:human =tired/hungry | B:human =happy
    A:person =sick | B:kin =happy
    A:person mögen O:tea/coffee/milk | B:person mögen P:beer/water
    A:person mögen O:cheese/chocolate | B:person mögen P:meat/bread
    A:person lieben O:city/museum/church | B:person lieben P:village/forest/garden
    A:person trinken O:tea/milk | B:person trinken P:coffee/water/beer
    A:person essen O:soup/bread/egg | B:person essen P:cake/meat/cheese/apple
    A:person lesen O:book/story | B:person lesen P:newspaper/letter
    A:person kaufen O:coat/dress/hat | B:person kaufen P:shirt/jacket/bag
    A:person kaufen O:bread/milk/egg | B:person kaufen P:flower/newspaper/cake
    A:person gehen @home/to.school | B:person bleiben @at_home/in_bed/in.city
    A:worker fahren @to.city/to.station/to.museum | B:human bleiben @at_home
    A:person gehen @to.cinema/to.museum | B:person gehen @to.church/to.school/home
    A:person sein @in.garden/in_front_of.house | B:human sein @in.kitchen/in.room/in_bed/at_home
    A:person sein @at.station/in.city | B:person sein @at_home/in.village
    A:dog sein @in.garden | B:cat sein @on.sofa/under.bed/in.kitchen
    A:key/letter/book liegen @on.table/next_to.lamp | B:hat/bag/coat/jacket liegen @on.chair/on.bed
    A:cup/glass stehen @on.table | B:bottle/lamp stehen @on.shelf/next_to.window
    A:soup/tea/coffee =hot | B:water/milk/beer =cold
    A:book/story =interesting | B:newspaper/letter =boring
    A:bicycle/lamp/coat/jacket =cheap | B:car/sofa/house/dress =expensive
    A:table/bed/sofa =old | B:chair/lamp/shelf =new
    A:dog =big | B:cat/mouse/bird =small
    A:house =big | B:garden/kitchen/room =small
    A:kitchen =clean | B:room/window =dirty
    A:person singen ~loudly/well | B:person singen ~quietly/badly
    A:person helfen B:kin/neighbor/teacher | C:person spielen
    A:person besuchen B:mother/father/aunt/grandmother | C:person besuchen D:doctor/teacher/neighbor
    A:person haben O:dog/cat | B:person haben P:horse/bird
    A:person suchen O:key/hat/bag | B:person suchen P:letter/book/ball/newspaper
    A:person abwischen O:table | B:person waschen P:cup/glass
    A:person aufstehen | B:person schlafen
    A:person lachen | B:person weinen
    """),
)

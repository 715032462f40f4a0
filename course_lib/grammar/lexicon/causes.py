"""Scripts, first part: what one does, and why. `sampler.scripts` says how to read a line.

A line is "effect | cause". Because of the cause the effect comes about; if there is the cause, so is the effect; and it
is worth saying where there is the cause but not the effect (although, yet). In front stands what holds of all lines.
"""

_ALL = "because although yet if"

CAUSES = (
    # how one feels
    (
        _ALL,
        """
    A:human schlafen @bed | A =tired
    A:pet schlafen @pet | A =tired
    A:sleeper sich_ausruhen | A =tired/sick
    A:person gehen @home | A =tired/sick/hungry
    A:human bleiben @in_bed | A =sick/tired
    A:human bleiben @at_home | A =sick/tired
    A:sleeper einschlafen | A =tired
    A:person sich_setzen @on.sofa/on.chair/on.bench/on.bed | A =tired
    A:human essen O:food | A =hungry
    A:eater fressen O:feed | A =hungry
    A:person gehen @into.kitchen | A =hungry
    A:crier weinen | A =hungry/tired/sick/sad
    A:human lachen | A =happy
    A:dancer tanzen | A =happy
    A:person singen | A =happy
    A:pet fressen not O:meat/cheese | A =sick
    A:human essen not O:food | A =sick
    A:human schlafen not | A =hungry/sick
    A:worker arbeiten not | A =sick/tired
    A:person kommen not | A =sick/tired
    A:player spielen not | A =sick/tired/sad
    A:dancer tanzen not | A =tired/sad/sick
    A:person anrufen O:doctor | A =sick
    A:person gehen @to.doctor | A =sick
    A:person sprechen O:doctor | A =sick
    A:person besuchen B:kin | B =sick/sad
    A:person helfen B:acquaintance | B =sick/old/tired
    A:mother/father/aunt/grandmother anrufen O:doctor | B:baby/child/boy/girl =sick
    A:person =sad | B:kin/dog/cat/horse =sick
    A:person geben B:child/boy/girl/baby/horse O:apple/bread/banana | B =hungry
    A:person geben B:dog/cat/child/boy/girl O:meat | B =hungry
    A:mother/father/aunt/grandmother tragen B:baby/child @into.house | B =tired
    A:person bringen B:acquaintance O:soup/tea | B =sick
    A:person anrufen B:kin | A =sad
    A:person schreiben O:letter | A =sad
    """,
    ),
    # what the thing, or the other one, is like
    (
        _ALL,
        """
    A:human essen O:apple/cake/cheese/soup/chocolate/banana/tomato/bread/egg/meat | O =fresh/sweet/warm
    A:human essen not O:soup/egg/meat/bread | O =cold/old
    A:eater fressen O:feed | O =fresh/sweet
    A:pet fressen not O:meat/cheese | O =old
    A:human trinken O:milk/water/beer | O =cold/fresh
    A:human trinken O:milk/tea/coffee | O =warm/hot
    A:human trinken not O:tea/coffee/milk | O =cold/hot
    A:person kaufen O:goods | O =cheap/beautiful
    A:person kaufen O:bread/milk/cheese/egg/apple/tomato/banana/cake/flower | O =fresh/cheap
    A:person kaufen not O:goods | O =expensive
    A:person kaufen not O:bag/lamp/table/bed/sofa/bicycle/car/house/wardrobe | O =old/dirty
    A:person lesen O:book/letter/newspaper/story | O =interesting
    A:person lesen not O:book/newspaper/letter/story | O =boring/long
    A:person wegwerfen O:newspaper/hat/shirt/lamp/chair/bag/cup | O =old
    A:person wegwerfen O:bread/cheese/meat/milk/egg/tomato/banana | O =old
    A:person wegwerfen O:bottle | O =empty/dirty
    A:person wegwerfen O:newspaper/letter | O =boring
    A:person waschen O:shirt/dress/jacket/coat/cup/glass/knife/car/dog/bottle | O =dirty
    A:person putzen O:cleanable | O =dirty
    A:person abwischen O:wipeable | O =dirty
    A:worker streichen O:bench/chair/table/shelf/house/kitchen | O =old/dirty
    A:worker reparieren O:bicycle/car/lamp/clock/chair/bench | O =old
    A:worker tragen not O:bag/lamp/clock/chair/table @carried | O =heavy
    A:person anziehen O:coat/jacket/dress/shirt | O =warm/new
    A:person anziehen not O:coat/jacket/dress/shirt | O =dirty/old
    A:person einladen B:teacher/neighbor/doctor/student | B =friendly
    A:person danken B:teacher/neighbor/doctor/student | B =friendly
    A:person gehen not @into.forest | O:forest =dark
    """,
    ),
    # two nouns that "it" could take up, one of which it does
    (
        "because",
        """
    A:person stellen O:cake/soup @on.table | O =warm/hot/fresh
    A:person stellen O:bottle @under.table | O =empty
    A:person stellen O:cup/glass @on.shelf | O =empty
    A:person legen O:book/newspaper @on.shelf | O =boring
    A:person legen O:letter/newspaper/book @on.table | O =boring/interesting
    A:person legen O:apple/banana @on.table | O =sweet/fresh
    A:person legen O:coat/jacket @in.wardrobe | O =warm
    A:person legen O:shirt/dress/coat/jacket @on.chair | O =dirty
    A:person legen O:jacket/coat @next_to.bed | O =warm
    A:person tragen O:cup/bottle/glass @into.kitchen | O =empty
    A:worker tragen O:lamp/clock/chair @into.room | O =beautiful/new
    A:person tragen O:cake/bread/soup @into.kitchen | O =warm/fresh
    A:person lesen O:newspaper/book @in.bus | O =interesting
    A:person lesen O:letter/story @at.table | O =long/interesting
    A:cat/dog fressen O:meat/cheese @in.kitchen | O =fresh
    A:dog/cat springen @onto.bed/onto.sofa | A =tired
    A:dog/cat springen @onto.table | A =hungry
    A:mouse/cat sich_verstecken @under.bed/behind.sofa/behind.wardrobe | A hören B:dog
    A:mouse sich_verstecken @under.table/behind.wardrobe/under.bed | A sehen B:cat
    A:cat sich_verstecken @under.sofa/behind.sofa/under.bed | A sehen B:dog
    """,
    ),
    (
        "because although yet",
        """
    A:person mögen O:garden/city/village/forest/church/house | O =beautiful
    A:person mögen not O:museum/village/book/story/city | O =boring
    A:person mögen O:chocolate/cake/banana/apple/tea | O =sweet
    A:person mögen O:bread/cheese/tomato/apple/soup | O =fresh
    A:person mögen not O:soup/coffee/tea | O =cold
    A:person mögen B:dog | B =friendly
    A:person mögen B:cat/dog/mouse/horse | B =clever
    A:person mögen B:teacher/neighbor/doctor/student/boy/girl | B =friendly/clever
    A:person besuchen O:museum | O =interesting
    A:person besuchen O:city/village/church | O =beautiful
    A:person besuchen not O:museum/village | O =boring
    A:bird/duck/lamb/chicken fressen O:bread | A =hungry
    A:dog/cat/lion/bear fressen O:meat | A =hungry
    A:mouse fressen O:cheese | A =hungry
    A:horse/pig/cow/lamb fressen O:apple | A =hungry
    A:dog/cat/lion/bear fressen O:meat | O =fresh
    A:mouse/pig fressen O:cheese/bread | O =fresh
    A:horse/pig/cow fressen O:apple/banana | O =sweet/fresh
    A:child/baby essen O:banana/apple/cake/chocolate | O =sweet
    A:child/baby essen O:soup/bread/banana | A =hungry
    A:child/baby trinken O:milk/water/tea | O =warm
    A:child/baby sich_ausruhen @on.sofa/on.bed | A =tired/sick
    A:child lesen O:book/story | O =interesting
    A:dog/cat/horse schlafen @behind.house/next_to.house | A =tired
    A:dog/cat schlafen @on.sofa/under.table/next_to.bed/in.garden | A =tired
    """,
    ),
    # wishes, needs, the weather, what others do
    (
        "because if",
        """
    A:person kaufen O:bread/milk/egg/table/chair/bed/lamp/bicycle/coat/jacket/knife/cup/clock/bag | A brauchen O
    A:person wegwerfen O:rubbish | A brauchen not O
    A:person suchen O:key/bag/coat/jacket/knife/book/bicycle | A brauchen O
    A:worker reparieren O:bicycle/car/lamp/clock/chair | A brauchen O
    A:person leihen B:borrower O:bicycle/book/bag/knife/lamp/chair/car | B brauchen O
    A:person bringen B:acquaintance O:key/chair/knife/coat/cup | B brauchen O
    A:person kaufen O:cake/chocolate/cheese/beer/flower/picture/dress/hat | A mögen O
    A:person einladen B:neighbor/teacher/student/girl/boy/aunt/doctor | A mögen B
    A:person besuchen B:kin/neighbor/teacher | A mögen B
    A:person öffnen O:window | it =warm/hot
    A:person zumachen O:window | it =cold
    A:person zumachen O:window | it regnen
    A:person anziehen O:coat/jacket | it =cold
    A:person anziehen O:coat/jacket | it regnen/schneien
    A:person aufsetzen O:hat | it =cold/hot
    A:person aufsetzen O:hat | it regnen/schneien
    A:sleeper bleiben @at_home | it regnen/schneien
    A:young spielen @in.room/in.house/in.kitchen | it regnen
    A:young/pet spielen not @in.garden | it regnen
    A:young/pet spielen @in.garden | it =warm
    A:young/pet spielen @in.garden | it schneien
    A:person gehen @into.garden | it =warm
    A:person gehen @home | it =dark/cold
    A:person_or_pet laufen @into.house | it regnen
    A:worker fahren @to.city/to.village | A besuchen B:kin +want
    A:worker fahren @to.station | A abholen B:kin +want
    A:person gehen @to.museum | A sehen O:picture +want
    A:person öffnen O:bottle | A trinken D:water/milk/beer +want
    A:person gehen @into.kitchen | A trinken D:water/tea/milk/coffee +want
    A:person gehen @into.room | A schlafen +want
    A:person gehen @into.garden | A sich_ausruhen +want
    A:person warten O:bus | A besuchen B:kin +want
    A:person anrufen B:kin/neighbor/doctor | A sprechen B +want
    A:person mitbringen O:cake/flower/gift/chocolate | A danken B:neighbor/teacher/aunt/grandmother/doctor +want
    A:person =happy | B:kin besuchen A
    A:worker aufwachen | B:baby weinen
    A:worker schlafen +can not | B:baby/child weinen
    A:worker/student arbeiten +can not | B:child/boy/girl lachen ~loudly
    A:person lesen +can not O:book/newspaper | B:child/boy/girl singen ~loudly
    A:pet sich_verstecken @under.table/under.bed | B:child/boy/girl weinen ~loudly
    A:person laufen @home | A sehen B:bear/lion
    """,
    ),
    # what happened before
    (
        "because",
        """
    A:person aufräumen O:kitchen/room/house | B:kin/teacher/doctor kommen ^ing
    A:person sich_beeilen | B:bus/doctor/teacher kommen ^ing
    A:worker fahren @to.station | B:kin/doctor ankommen ^ing
    A:person putzen O:window/kitchen | B:kin/neighbor/teacher besuchen A ^ing
    A:person suchen O:key/letter/ball/hat/bag/book/jacket | A verlieren O ^perfect
    A:person =sad | A verlieren O:key/letter/ball/hat/bag/book/jacket ^perfect
    A:child/boy/girl weinen ^ing | A verlieren O:ball/hat/book/jacket ^perfect
    A:person =happy | A finden O:key/letter/ball/hat/bag/cat/dog ^perfect
    A:person zurückkommen | A vergessen O:key/bag/hat/book/letter/jacket ^perfect
    A:person =happy | B:kin/neighbor/teacher schicken A O:letter/gift/picture/flower ^perfect
    A:person =happy | B:kin/neighbor geben A O:gift/flower/book/picture ^perfect
    A:person =happy | B:kin einladen A ^perfect
    A:person danken B:neighbor/teacher/student/doctor/boy/girl/man/woman | B helfen A ^perfect
    A:person danken B:neighbor/aunt/grandmother/man/woman | B leihen A O:bicycle/car/coat/book ^perfect
    A:person =happy | A besuchen B:kin ^future
    A:person =happy | B:kin zurückkommen ^perfect
    A:person =happy | B:kin besuchen A ^future
    A:person =tired | A arbeiten ^perfect
    A:player =tired | A spielen @in.garden ^perfect
    A:dog =dirty | A spielen @in.garden/in.forest ^perfect
    A:sleeper =tired | A schlafen not ^perfect
    A:person =sad | B:kin anrufen not A ^perfect
    A:teacher =happy | B:student/child/boy/girl antworten A ^perfect
    A:person suchen O:dog/cat | A verlieren O ^perfect
    A:person gehen not @home | A vergessen O:key ^perfect
    A:person waschen O:shirt/dress/jacket/coat | A anziehen O +want
    A:person aufräumen O:kitchen/room/house | A einladen B:kin/teacher/neighbor/doctor ^perfect
    A:person sich_beeilen | A arbeiten +must
    A:worker aufstehen | A arbeiten +must
    A:person kommen not | A arbeiten +must
    A:person sich_beeilen | A arbeiten +must
    """,
    ),
)

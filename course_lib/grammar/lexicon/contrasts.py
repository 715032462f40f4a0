"""Scripts, fourth part: what stands in the way, and what two people or things have in common or not.

`sampler.scripts` says how to read a line.
"""

CONTRASTS = (
    # what stands in the way, or makes up for it
    (
        "but",
        """
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
    A:person tragen +want O:bag/clock/lamp @carried | O =heavy
    A:person anziehen +want O:coat/jacket/shirt/dress | O =dirty
    A:player spielen +want @in.garden | it regnen
    A:person arbeiten +want @in.garden | it regnen/schneien
    A:person singen +can | A tanzen +can not
    A:person singen ~well | A tanzen ~badly
    A:person tanzen ~well | A singen ~badly
    A:person kennen B:neighbor/teacher/doctor/queen/woman/man | A mögen not B
    A:person kennen O:village/city/museum/forest/book/story | A mögen not O
    A:person haben O:dog | A haben not P:cat
    A:person haben O:cat | A haben not P:dog
    A:person haben O:bicycle | A haben not P:car
    A:person haben O:house | A haben not P:garden
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
    O:person =happy | O =hungry/tired
    O:grandmother/aunt/mother/father =sick | O arbeiten +must
    """,
    ),
    # side by side
    (
        "and but",
        """
    A:person =happy | B:person =sad
    A:person mögen O:tea/coffee/milk | B:person mögen P:water/chocolate
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
    A:person singen ~loudly | B:person singen ~quietly
    A:person singen ~well | B:person singen ~badly
    A:person haben O:dog/cat | B:person haben P:horse/bird
    A:person suchen O:key/hat/bag | B:person suchen P:letter/book/ball/newspaper
    A:person aufstehen | B:person schlafen
    A:person lachen | B:person weinen
    """,
    ),
)

"""Scripts, second part: what comes after what, or what does not come although one would expect it.

`sampler.scripts` says how to read a line.
"""

COURSES = (
    # one thing after the other
    (
        "and before",
        """
    A:person waschen O:apple/tomato | A essen O
    A:person waschen O:cup/glass | A stellen O @on.table/on.shelf
    A:person waschen O:shirt/dress/jacket | A legen O @in.wardrobe/on.bed/on.chair
    A:person waschen O:dress/shirt/jacket/coat | A anziehen O
    A:person lesen O:letter/newspaper | A wegwerfen O
    A:person lesen O:book/newspaper/letter | A legen O @on.table/on.shelf/next_to.lamp
    A:person öffnen O:letter | A lesen O
    A:person aufstehen | A sich_waschen
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
    """,
    ),
    (
        "and",
        """
    A:person aufwachen | A aufstehen
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
    A:person finden O:key/ball/hat/book/bag @under.bed/behind.sofa/under.table | A geben B:acquaintance O
    A:person finden O:ball/book/hat/bag @in.garden/in.bus/in.forest/on.bench | A bringen B:child/boy/girl/teacher O
    A:person finden O:letter/newspaper/book @on.table/on.bench/under.bed/in.wardrobe | A lesen O
    A:person finden O:apple/banana/cake/chocolate/cheese @in.kitchen/on.table/on.shelf | A essen O
    A:person malen O:picture | A zeigen B:acquaintance O
    A:person malen O:picture | A schicken B:kin O
    A:person schreiben O:letter | A schicken B:kin O
    A:person schreiben O:letter/story | A zeigen B:kin/teacher/neighbor O
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
    """,
    ),
    # what one would expect next, and what does not happen
    (
        "but_not",
        """
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
    """,
    ),
)

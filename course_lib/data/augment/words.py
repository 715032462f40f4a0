"""Months, number words and the sentences around prices, dates, names and addresses that `augment` draws from."""

MONTHS = {
    "January": "Januar", "February": "Februar", "March": "März", "April": "April", "May": "Mai", "June": "Juni",
    "July": "Juli", "August": "August", "September": "September", "October": "Oktober", "November": "November",
    "December": "Dezember",
}  # fmt: skip
DAYS = {
    "Monday": "Montag", "Tuesday": "Dienstag", "Wednesday": "Mittwoch", "Thursday": "Donnerstag", "Friday": "Freitag",
    "Saturday": "Samstag", "Sunday": "Sonntag",
}  # fmt: skip
TITLES = [("Mrs.", "Frau"), ("Ms.", "Frau"), ("Dr.", "Dr."), ("Professor", "Professor")]  # the same in each case
NUMBER_WORDS = {
    "two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs", "seven": "sieben", "eight": "acht",
    "nine": "neun", "ten": "zehn", "eleven": "elf", "twelve": "zwölf", "fifteen": "fünfzehn", "twenty": "zwanzig",
    "thirty": "dreißig", "forty": "vierzig", "fifty": "fünfzig", "a hundred": "hundert",
}  # fmt: skip

# "{}" is where the price, the date or the address stands.
PRICES = """
It costs {}.|Es kostet {}.
It cost {}.|Es kostete {}.
This book costs {}.|Dieses Buch kostet {}.
The ticket costs {}.|Die Karte kostet {}.
That's {}.|Das macht {}.
That's {}, please.|Das macht {}, bitte.
I paid {} for it.|Ich habe dafür {} bezahlt.
We paid {} for the meal.|Wir haben für das Essen {} bezahlt.
She paid {} for the dress.|Sie hat für das Kleid {} bezahlt.
I owe you {}.|Ich schulde dir {}.
You owe them {}.|Du schuldest ihnen {}.
I only have {}.|Ich habe nur {}.
I have {} with me.|Ich habe {} dabei.
He gave me {}.|Er gab mir {}.
She lent him {}.|Sie lieh ihm {}.
He earns {} a month.|Er verdient {} im Monat.
I bought it for {}.|Ich habe es für {} gekauft.
He sold his car for {}.|Er hat sein Auto für {} verkauft.
You can rent a bike for {} a day.|Du kannst für {} am Tag ein Fahrrad mieten.
The shoes cost {}.|Die Schuhe kosten {}.
How about {}?|Wie wäre es mit {}?
The bill came to {}.|Die Rechnung betrug {}.
We need {}.|Wir brauchen {}.
I found {} on the street.|Ich habe auf der Straße {} gefunden.
He spent {} on books.|Er hat {} für Bücher ausgegeben.
Prices start at {}.|Die Preise beginnen bei {}.
"""
SHARES = """
About {} of the students passed.|Etwa {} der Studenten haben bestanden.
Prices have fallen by {}.|Die Preise sind um {} gefallen.
Sales rose by {} last year.|Der Umsatz stieg letztes Jahr um {}.
I am {} sure.|Ich bin mir zu {} sicher.
We offer a discount of {}.|Wir bieten {} Rabatt.
The unemployment rate is {}.|Die Arbeitslosenquote beträgt {}.
More than {} of the people agreed.|Mehr als {} der Leute stimmten zu.
Only {} of them came.|Nur {} von ihnen sind gekommen.
The battery is at {}.|Der Akku ist bei {}.
The water makes up {} of it.|Das Wasser macht {} davon aus.
"""
DATES = """
He was born on {}.|Er wurde am {} geboren.
She was born on {}.|Sie wurde am {} geboren.
The war began on {}.|Der Krieg begann am {}.
Her birthday is on {}.|Ihr Geburtstag ist am {}.
School starts on {}.|Die Schule beginnt am {}.
The concert is on {}.|Das Konzert ist am {}.
We arrived on {}.|Wir sind am {} angekommen.
They got married on {}.|Sie haben am {} geheiratet.
The museum opens on {}.|Das Museum öffnet am {}.
I moved here on {}.|Ich bin am {} hierhergezogen.
He died on {}.|Er starb am {}.
The exam is on {}.|Die Prüfung ist am {}.
"""
CLOCKS = """
It is {}.|Es ist {}.
It's {} now.|Es ist jetzt {}.
It was {}.|Es war {}.
The bus leaves at {}.|Der Bus fährt um {} ab.
The film starts at {}.|Der Film beginnt um {}.
The lesson begins at {}.|Der Unterricht beginnt um {}.
School ends at {}.|Die Schule endet um {}.
Please come at {}.|Komm bitte um {}.
We arrived at {}.|Wir sind um {} angekommen.
She called me at {}.|Sie hat mich um {} angerufen.
I went to bed at {}.|Ich ging um {} ins Bett.
I woke up at {}.|Ich bin um {} aufgewacht.
Let's meet at {} tomorrow.|Treffen wir uns morgen um {}.
The plane landed at {}.|Das Flugzeug landete um {}.
Can you be here by {}?|Kannst du bis {} hier sein?
We open at {} and close at {}.|Wir öffnen um {} und schließen um {}.
I work from {} to {}.|Ich arbeite von {} bis {}.
I waited until {}.|Ich wartete bis {}.
"""
DIGITS = """
The number is {}.|Die Nummer ist {}.
Call {}.|Rufen Sie {} an.
Please call {}.|Rufen Sie bitte {} an.
His number is {}.|Seine Nummer ist {}.
What is your number? Mine is {}.|Wie lautet deine Nummer? Meine ist {}.
The code is {}.|Der Code ist {}.
The password is {}.|Das Passwort ist {}.
My room number is {}.|Meine Zimmernummer ist {}.
He lives in room {}.|Er wohnt in Zimmer {}.
I am in room {}.|Ich bin in Zimmer {}.
Take bus {}.|Nehmen Sie den Bus {}.
Room {} is upstairs.|Zimmer {} ist oben.
Room {} is empty.|Zimmer {} ist leer.
Is room {} free?|Ist Zimmer {} frei?
Flight {} is late.|Flug {} hat Verspätung.
The answer is {}.|Die Antwort ist {}.
Open the book on page {}.|Öffnen Sie das Buch auf Seite {}.
It is on page {}.|Es steht auf Seite {}.
She lives in house number {}.|Sie wohnt in Hausnummer {}.
{}|{}
"""
COUNTS = """
We have {} rooms.|Wir haben {} Zimmer.
I need {} eggs.|Ich brauche {} Eier.
He has read {} books.|Er hat {} Bücher gelesen.
The town has {} inhabitants.|Die Stadt hat {} Einwohner.
There are {} seats in the hall.|In dem Saal gibt es {} Plätze.
They sold {} cars last year.|Sie haben letztes Jahr {} Autos verkauft.
She invited {} people.|Sie hat {} Leute eingeladen.
I have written {} letters.|Ich habe {} Briefe geschrieben.
The bridge is {} meters long.|Die Brücke ist {} Meter lang.
We drove {} kilometers.|Wir sind {} Kilometer gefahren.
{} people live here.|Hier leben {} Menschen.
Only {} of {} people came.|Nur {} von {} Leuten sind gekommen.
{} of the {} houses are empty.|{} der {} Häuser stehen leer.
{} out of {} children can swim.|{} von {} Kindern können schwimmen.
I answered {} of {} questions.|Ich habe {} von {} Fragen beantwortet.
"""
RANGES = """
The office is closed from {} to {}.|Das Büro ist von {} bis {} geschlossen.
She works from {} to {}.|Sie arbeitet von {} bis {}.
I sleep from {} to {}.|Ich schlafe von {} bis {}.
We had class from {} to {}.|Wir hatten von {} bis {} Unterricht.
We stayed there for {}-{} days.|Wir sind {}-{} Tage dort geblieben.
It takes {}-{} minutes.|Es dauert {}-{} Minuten.
Wait {}-{} minutes.|Warte {}-{} Minuten.
It takes {} to {} hours.|Es dauert {} bis {} Stunden.
There are {} to {} people in the room.|In dem Zimmer sind {} bis {} Leute.
Read pages {} to {}.|Lies Seite {} bis {}.
I need {}-{} euros.|Ich brauche {}-{} Euro.
Count from {} to {}.|Zähle von {} bis {}.
"""
# First a person, then a city.
PEOPLE = """
I met {} in {}.|Ich habe {} in {} getroffen.
We saw {} in {} last week.|Wir haben {} letzte Woche in {} gesehen.
I got to know {} in {}.|Ich habe {} in {} kennengelernt.
{} lives in {}.|{} wohnt in {}.
{} was born in {}.|{} wurde in {} geboren.
{} comes from {}.|{} kommt aus {}.
{} is flying to {} tomorrow.|{} fliegt morgen nach {}.
{} has never been to {}.|{} war noch nie in {}.
{} works in {}.|{} arbeitet in {}.
I went to {1} with {0}.|Ich bin mit {0} nach {1} gefahren.
I got a letter from {}.|Ich habe einen Brief von {} bekommen.
I am waiting for {}.|Ich warte auf {}.
Have you seen {}?|Hast du {} gesehen?
Do you remember {}?|Erinnerst du dich an {}?
Please call {}.|Bitte ruf {} an.
Give this to {}.|Gib das {}.
Tell {} that I am here.|Sag {}, dass ich hier bin.
Where is {}?|Wo ist {}?
Who is {}?|Wer ist {}?
Is {} here?|Ist {} hier?
Ask {} about it.|Frag {} danach.
This is {}.|Das ist {}.
I am {}.|Ich bin {}.
Hello, {}!|Hallo, {}!
Thank you, {}.|Danke, {}.
{} is very friendly.|{} ist sehr freundlich.
{}'s house is old.|Das Haus von {} ist alt.
That is {}'s car.|Das ist das Auto von {}.
{} and I are friends.|{} und ich sind befreundet.
{} has a sister.|{} hat eine Schwester.
{} speaks three languages.|{} spricht drei Sprachen.
{} wants to talk to you.|{} will mit dir sprechen.
May I introduce {}?|Darf ich {} vorstellen?
This is {} from {}.|Das ist {} aus {}.
The house belongs to {}.|Das Haus gehört {}.
The book was written by {}.|Das Buch wurde von {} geschrieben.
"""
ROUTES = """
We drove from {} to {}.|Wir sind von {} nach {} gefahren.
The train from {} to {} is late.|Der Zug von {} nach {} hat Verspätung.
She flew from {} to {}.|Sie flog von {} nach {}.
He moved from {} to {}.|Er zog von {} nach {}.
How far is it from {} to {}?|Wie weit ist es von {} nach {}?
I took the bus from {} to {}.|Ich nahm den Bus von {} nach {}.
A ticket from {} to {}, please.|Eine Fahrkarte von {} nach {}, bitte.
They traveled from {} to {} by train.|Sie sind mit dem Zug von {} nach {} gereist.
We were in {} and in {}.|Wir waren in {} und in {}.
{} is bigger than {}.|{} ist größer als {}.
I like {} more than {}.|Ich mag {} lieber als {}.
I live in {} now.|Ich wohne jetzt in {}.
Is {} far away?|Ist {} weit weg?
"""
ADDRESSES = """
Visit {}.|Besuchen Sie {}.
Please visit {} for more information.|Besuchen Sie bitte {} für mehr Informationen.
Look at {} first, then at {}.|Sieh dir zuerst {} an, dann {}.
Open {}.|Öffnen Sie {}.
This is for you {}|Das ist für dich {}
Please write to {}.|Bitte schreiben Sie an {}.
Send it to {}.|Schicken Sie es an {}.
Send an email to {}.|Schicken Sie eine E-Mail an {}.
I found it on {}.|Ich habe es auf {} gefunden.
I read about it on {}.|Ich habe auf {} darüber gelesen.
You can find it at {}.|Sie finden es auf {}.
You can find us at {}.|Sie finden uns auf {}.
Our website is {}.|Unsere Webseite ist {}.
My email address is {}.|Meine E-Mail-Adresse ist {}.
Go to {}.|Gehen Sie auf {}.
Click on {}.|Klicken Sie auf {}.
Have you seen {}?|Hast du {} gesehen?
Do you know {}?|Kennst du {}?
Look at {}.|Sieh dir {} an.
What does {} mean?|Was bedeutet {}?
I don't know what {} is.|Ich weiß nicht, was {} ist.
The word {} is new to me.|Das Wort {} ist mir neu.
The letter {} is hard to write.|Der Buchstabe {} ist schwer zu schreiben.
{} is a word.|{} ist ein Wort.
{} is a good website.|{} ist eine gute Webseite.
I like {}.|Ich mag {}.
Thank you! {}|Danke! {}
Good morning {}|Guten Morgen {}
Write to {} or to {}.|Schreiben Sie an {} oder an {}.
The train leaves from platform {}.|Der Zug fährt von Gleis {} ab.
Flight {} leaves from gate {}.|Flug {} startet von Gate {}.
My seat is {}.|Mein Platz ist {}.
Take bus {} to {}.|Nehmen Sie den Bus {} nach {}.
The room number is {}.|Die Zimmernummer ist {}.
Bus {} goes to gate {}.|Der Bus {} fährt zum Gate {}.
The number of my car is {}.|Mein Kennzeichen ist {}.
Your code is {}.|Ihr Code ist {}.
{} and {} are the same.|{} und {} sind dasselbe.
What is the difference between {} and {}?|Was ist der Unterschied zwischen {} und {}?
{}|{}
"""


def templates(table: str) -> list[tuple[str, str]]:
    """English and German of each line."""
    return [tuple(line.split("|")) for line in table.strip().splitlines()]

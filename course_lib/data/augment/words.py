"""Names, places, months and the sentences around prices, dates and addresses that `augment` draws from."""

MEN = """
Aaron Adam Adrian Ahmed Alan Albert Alejandro Ali Andrew Anthony Antonio Arthur Ben Benjamin Bilal Bob Brian Bruno Carl
Carlos Chen Christian Daniel David Dennis Diego Dmitri Edgar Edward Elias Emil Enrique Eric Farid Felix Fernando Frank
Fritz Gabriel George Giovanni Günther Hamid Hans Harald Harry Hassan Henry Hiroshi Hugo Ian Ibrahim Igor Ivan Jack Jacob
Jan Jens Jim Joaquin Johan John Jonathan Jorge Joseph Juan Jürgen Karim Karl Ken Kenji Kevin Khalid Klaus Kofi Kurt Lars
Leo Leon Liam Louis Luca Luigi Malik Marco Mario Mark Martin Matteo Max Michael Miguel Mike Mohammed Nathan Nick Noah
Oliver Omar Oscar Otto Pablo Patrick Paul Pedro Peter Philip Pierre Rafael Raj Ralph Ravi Richard Robert Roger Roman Sam
Samuel Sanjay Scott Sean Sergei Simon Stefan Stephen Steve Sven Takeshi Ted Theo Thomas Tim Timo Tobias Uwe Victor
Viktor Walter Wei William Winston Wolfgang Youssef Yuri
""".split()
WOMEN = """
Agnes Aiko Alexandra Alice Amina Amy Ana Andrea Angela Anita Anja Anna Annika Astrid Barbara Beatrice Bianca Birgit
Brigitte Carla Carmen Caroline Catherine Chiara Chloe Christine Clara Claudia Cristina Dana Daniela Deborah Diana Elena
Elisabeth Ella Emily Emma Erika Esther Eva Fatima Fiona Florence Francesca Frieda Gabriela Gloria Greta Hana Hannah
Heidi Helen Helga Ida Ingrid Irene Isabel Jane Janet Jennifer Jessica Joana Johanna Judith Julia Karin Kate Katja Keiko
Kim Laila Laura Layla Lea Lena Leonie Lily Linda Lisa Louise Lucia Lucy Luisa Magda Margaret Maria Marie Marlene Marta
Maya Mei Mia Miriam Monica Monika Nadia Nancy Naomi Natalia Nicole Nina Nora Olga Olivia Patricia Paula Petra Rachel
Rebecca Renate Rita Rosa Ruth Sabine Sandra Sara Sarah Selma Silvia Simone Sonja Stella Susan Sylvia Tanja Teresa Tina
Ulrike Ursula Valentina Vanessa Vera Veronica Victoria Wendy Yasmin Yoko Yvonne Zeynep
""".split()
SURNAMES = """
Adams Ahmed Allen Anderson Bailey Baker Becker Bell Bennett Bianchi Brown Carter Castillo Chang Chen Clark Collins
Cooper Costa Cruz Davis Dubois Dupont Edwards Evans Fischer Fernandez Fuchs Garcia Gomez Green Gupta Haddad Hansen
Hoffmann Huber Hughes Ibrahim Ito Ivanov Jackson Jansen Johnson Jones Kato Kaufmann Keller Kim King Klein Koch Kowalski
Kumar Lang Larsen Lee Lehmann Lewis Li Lopez Martin Martinez Meier Mendoza Meyer Miller Mitchell Moore Mori Moreau
Morgan Müller Murphy Nakamura Neumann Nguyen Nowak Okafor Olsen Park Parker Patel Pereira Peters Petrov Phillips Reed
Richter Rivera Roberts Robinson Rodriguez Rossi Sanchez Sato Schmidt Schneider Schulz Schwarz Scott Silva Singh Smith
Suzuki Takahashi Tanaka Taylor Thompson Torres Turner Van Vogel Wagner Walker Wang Watson Weber White Williams Wilson
Wolf Wong Wood Wright Yamada Yilmaz Young Zhang Zimmermann
""".split()
CITIES = """
Aachen Accra Amsterdam Ankara Atlanta Austin Baltimore Bangkok Barcelona Basel Bergen Berlin Bern Birmingham Bogota
Bonn Bremen Bristol Brisbane Budapest Cairo Calgary Cardiff Casablanca Chicago Cleveland Dallas Delhi Denver Detroit
Dortmund Dresden Dublin Edinburgh Essen Frankfurt Glasgow Graz Hamburg Hannover Hanoi Helsinki Houston Innsbruck
Istanbul Jakarta Kiel Kyoto Lagos Leeds Leipzig Lima Linz Liverpool London Lyon Madrid Malaga Manchester Manila
Mannheim Marseille Melbourne Miami Minsk Montreal Mumbai Nagoya Nashville Oakland Odessa Osaka Oslo Ottawa Oxford Paris
Perth Philadelphia Phoenix Portland Porto Potsdam Quito Riga Rostock Rotterdam Salzburg Santiago Seattle Seoul Shanghai
Singapore Sofia Stockholm Stuttgart Sydney Tallinn Tampa Tirana Tokyo Toronto Trier Tunis Utrecht Vancouver Weimar
Zagreb Zürich
""".split()
SYLLABLES = """
a ba be bo bra da de dri e el en fa fi ga gre ha i in jo ka ke ko kra la le li lo ma me mi mo na ne ni no o on or pa pe
po ra re ri ro sa schu sha si sko so ta te ti to tsu u un va ve vi wa we wo xi ya yo za ze zu
""".split()
CODAS = ["", "", "", "n", "r", "l", "m", "k", "t", "d", "ng", "rt", "sch", "ck", "b", "ll"]

MONTHS = {
    "January": "Januar", "February": "Februar", "March": "März", "April": "April", "May": "Mai", "June": "Juni",
    "July": "Juli", "August": "August", "September": "September", "October": "Oktober", "November": "November",
    "December": "Dezember",
}  # fmt: skip
DAYS = {
    "Monday": "Montag", "Tuesday": "Dienstag", "Wednesday": "Mittwoch", "Thursday": "Donnerstag", "Friday": "Freitag",
    "Saturday": "Samstag", "Sunday": "Sonntag",
}  # fmt: skip
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
{}|{}
"""


def templates(table: str) -> list[tuple[str, str]]:
    """English and German of each line."""
    return [tuple(line.split("|")) for line in table.strip().splitlines()]

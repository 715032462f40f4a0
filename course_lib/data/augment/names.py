"""Names of people and places that `augment` draws from, and the pieces of those that it makes up."""

MEN = """
Aaron Abdul Adam Adrian Ahmed Alan Albert Alejandro Alexei Ali Alistair Amadou Anders Andrew Andrzej Anthony Antonio
Arjun Arthur Babak Balázs Ben Benjamin Bilal Bob Bogdan Brandon Brian Bruno Callum Carl Carlos Cedric Chen Chinedu
Christian Clemens Cornelius Cyril Daniel Darius David Dennis Diego Dieter Dmitri Dragan Duncan Edgar Edmund Edward
Elias Emeka Emil Enrique Eric Ethan Evgeny Ezekiel Farid Felix Fernando Finn Florian Francisco Frank Frederick Fritz
Gabriel Gareth Geoffrey George Giovanni Giuseppe Goran Gregory Guillaume Gustavo Günther Hamid Hans Harald Harry Haruki
Hassan Hector Henry Hiroshi Horst Hugo Humphrey Hussein Ian Ibrahim Ignacio Igor Isaac Ivan Jack Jacob Jakub Jamal Jan
Javier Jens Jeremiah Jim Joachim Joaquin Johan John Jonathan Jorge Joseph Joshua Juan Julian Jürgen Kareem Karim Karl
Ken Kenji Kevin Khalid Klaus Kofi Konrad Kurt Kwame Lars Leo Leon Leonard Leroy Liam Lorenzo Louis Luca Luigi Lukas
László Maksim Malik Marcel Marco Mario Mark Martin Mateo Matteo Matthias Maurice Max Maximilian Mehmet Michael Miguel
Mike Mikhail Milan Mohammed Mustafa Nathan Nathaniel Nick Nikolai Noah Olaf Oleksandr Oliver Omar Oscar Osman Otto
Pablo Patrick Paul Pavel Pedro Percival Peter Philip Philippe Pierre Piotr Quentin Rafael Raj Rajesh Ralph Ravi
Reginald Reinhard René Richard Robert Rodrigo Roger Roman Rudolf Rupert Salvatore Sam Samuel Sanjay Scott Sean
Sebastian Sergei Shankar Siegfried Simon Stanislaw Stefan Stephen Steve Sven Tadeusz Takeshi Tariq Ted Terrence
Thaddeus Theo Thomas Tim Timo Tobias Tomasz Uwe Victor Vikram Viktor Vincent Vladimir Walter Wei Wilhelm William
Winston Wojciech Wolfgang Xander Youssef Yuri Yusuf Zachary Zoltan
""".split()
WOMEN = """
Adriana Agnes Agnieszka Aiko Aleksandra Alexandra Alice Amina Amy Ana Andrea Angela Anita Anja Anna Annika Astrid
Ayesha Barbara Beata Beatrice Bernadette Bianca Birgit Blessing Brigitte Bronwyn Camille Carla Carmen Caroline
Cassandra Catherine Charlotte Chiara Chioma Chloe Christine Clara Claudia Clementine Cristina Dagmar Dana Daniela
Danuta Deborah Delphine Diana Dolores Dorothy Eleanor Elena Elif Elisabeth Elizabeth Ella Emily Emma Erika Esther Eva
Ewa Farah Fatima Felicity Fiona Florence Francesca Franziska Frieda Friederike Gabriela Genevieve Georgina Gertrud
Giulia Gloria Greta Guadalupe Gudrun Hana Hannah Harriet Heidi Helen Helga Hildegard Ida Imani Indira Ingrid Ioana
Irene Irina Isabel Jacqueline Jadwiga Jane Janet Jasmine Jennifer Jessica Joana Johanna Josephine Juanita Judith Julia
Kamila Karin Kate Kateryna Kathleen Katja Keiko Khadija Kim Kristina Ksenia Laila Lakshmi Larissa Laura Layla Lea Leila
Lena Leonie Lieselotte Lily Linda Lisa Louise Lucia Lucille Lucy Ludmila Luisa Madeleine Magda Malgorzata Margaret
Maria Mariana Marie Marlene Marta Mathilda Maureen Maya Mei Mercedes Meryem Mia Mildred Miranda Miriam Miyuki Monica
Monika Nadezhda Nadia Nancy Naomi Natalia Nicole Nina Nkechi Noor Nora Oksana Olga Olivia Ophelia Padma Parvati
Patricia Paula Penelope Petra Philippa Priscilla Quinn Rachel Rebecca Renate Rita Rosa Rosalind Rosario Roswitha Ruth
Sabine Sakura Sandra Sangeeta Sara Sarah Scarlett Selma Shanti Sieglinde Silvia Simone Siobhan Solveig Sonja Soraya
Stella Stephanie Sunita Susan Swetlana Sylvia Tamara Tanja Tatiana Teresa Thandiwe Theresa Tina Ulrike Ursula Valentina
Vanessa Vera Veronica Veronika Victoria Violet Waltraud Wanda Wendy Wilhelmina Winifred Xenia Yasmin Yevgenia Yoko
Yvonne Zainab Zeynep Zofia
""".split()
SURNAMES = """
Abebe Achterberg Adams Aguirre Ahmed Allen Alvarez Anderson Andersson Bailey Baker Balogun Banerjee Baumgartner Becker
Bell Bennett Bergström Bianchi Blackwood Bondarenko Brown Carpenter Carter Castillo Chang Chatterjee Chen Christodoulou
Clark Collins Cooper Costa Cruz Cunningham Davis Delacroix Dimitrov Dubois Dupont Edwards Eriksson Evans Farouk
Fernandez Ferrari Fischer Fitzpatrick Flores Fraser Fuchs Gallagher Garcia Georgiou Gomez Gonzalez Gorbunov Grabowski
Green Gupta Gutierrez Haddad Hansen Hashimoto Hernandez Herzog Hoffmann Holloway Horvath Huber Hughes Ibrahim Ito
Ivanov Iyer Jackson Jankowski Jansen Johnson Jones Jovanovic Kapoor Karlsson Kato Kaufmann Keller Khan Kim Kimura King
Klein Koch Kovacs Kowalski Krishnan Kruger Kumar Kuznetsov Lang Larsen Lee Lehmann Lewis Li Lindqvist Lombardi Lopez
Mahmoud Marchetti Martin Martinez McDonald Meier Mendoza Mensah Meyer Miller Mitchell Montgomery Moore Moreau Morgan
Mori Mukherjee Murakami Murphy Müller Nakamura Neumann Nguyen Nkosi Novak Nowak Obi Okafor Olsen Onyango Oyelaran
Papadopoulos Park Parker Patel Pavlenko Pereira Perez Peters Petrov Phillips Popescu Quispe Rahman Ramirez Rasmussen
Reddy Reed Richter Rivera Roberts Robinson Rodriguez Rosenberg Rossi Rutherford Sanchez Sato Schmidt Schneider Schulz
Schwarz Schwarzenbach Scott Shevchenko Silva Sinclair Singh Smith Sokolov Steinmeier Stewart Sundaram Suzuki Szabo
Takahashi Tanaka Taylor Thompson Tkachenko Torres Turner Underwood Van Vandenberg Vargas Vasquez Vogel Wagner Walker
Wallace Wang Watson Weber White Williams Wilson Wolf Wong Wood Wozniak Wright Yamada Yeltsin Yilmaz Young Zhang Zhao
Zhou Zielinski Zimmermann
""".split()
CITIES = """
Aachen Aberdeen Accra Adelaide Agadir Albuquerque Amsterdam Ankara Atlanta Auckland Augsburg Austin Baltimore Bamberg
Bangkok Barcelona Basel Belfast Bergamo Bergen Berlin Bern Bilbao Birmingham Bochum Bologna Bonn Bordeaux Braga Bremen
Brisbane Bristol Brno Budapest Buffalo Bursa Calgary Cambridge Canberra Cardiff Cartagena Casablanca Charleston Chennai
Chicago Cincinnati Cleveland Colombo Cork Coventry Dakar Dallas Darmstadt Delhi Denver Detroit Djibouti Doha Dortmund
Dresden Dubai Dublin Durban Edinburgh Eindhoven Erfurt Essen Flensburg Frankfurt Freiburg Galway Gdansk Glasgow Granada
Graz Groningen Guadalajara Hamburg Hannover Hanoi Harare Heidelberg Helsinki Honolulu Houston Innsbruck Istanbul
Jakarta Jena Johannesburg Kabul Kampala Karachi Karlsruhe Kassel Kiel Kigali Kingston Koblenz Konstanz Kyoto Lahore
Lausanne Leeds Leicester Leipzig Lima Linz Liverpool London Luanda Lublin Luxor Lyon Lübeck Madrid Magdeburg Malaga
Malmö Manchester Manila Mannheim Maputo Marseille Medellin Melbourne Memphis Miami Minsk Mombasa Monterrey Montevideo
Montreal Mumbai Münster Nagasaki Nagoya Nantes Nashville Newcastle Norwich Nottingham Oakland Oaxaca Odessa Omaha Osaka
Oslo Ottawa Oxford Palermo Panama Paris Passau Perth Philadelphia Phoenix Pittsburgh Plymouth Portland Porto Potsdam
Poznan Pretoria Quito Rabat Recife Regensburg Riga Rochester Rostock Rotterdam Saarbrücken Sacramento Salzburg Santiago
Sapporo Sarajevo Seattle Seoul Shanghai Sheffield Singapore Skopje Sofia Split Stockholm Stuttgart Sydney Tallinn Tampa
Tokyo Toledo Toronto Toulouse Trier Trieste Tucson Tunis Turin Utrecht Valencia Valparaiso Vancouver Verona Vilnius
Weimar Windhoek Wolfsburg Worms Würzburg Yangon Yokohama Zagreb Zwickau Zürich
""".split()

# A name is made of one to three of: beginning, vowel, now and then a coda.
ONSETS = """
b bl br c ch chr cl cr d dr f fl fr g gl gr gw h j k kh kl kr kw l m mb n nd ng ny p ph pl pr qu r rh s sc sch sh sk sl
sp st str sv sw t th tr ts v vl w wh x y z zh zw
""".split()
VOWELS = "a a a a a a e e e e e i i i i o o o o u u u ai au ay ea ee ei eu ia ie io oo ou ue y ü ö é á".split()
CODAS = ["", "", "", ""] + "n n r r l m k t d s ng rt nd sch ck ll v x w th nz".split()

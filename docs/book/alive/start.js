// Wakes the living widgets. Browsers load no modules from a file on disk: there, pages keep the first states.

if (location.protocol === "file:")
  document.querySelectorAll(".alive[data-now]").forEach((place) => {
    place.textContent = "The translator needs the pages on a server: python -m http.server, in their folder, is one.";
  });
else import(new URL("mount.js", document.currentScript.src).href);

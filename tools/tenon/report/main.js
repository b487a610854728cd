// SPDX-License-Identifier: Apache-2.0
showAbout();
overview.draw();
roofline.draw();
timings.draw();
viewer.draw();
tuning.draw();
for (const section of document.querySelectorAll("main > section:not([hidden])")) {
  const heading = section.querySelector("h2");
  if (heading) document.getElementById("nav").append(make("a", {href: "#" + section.id}, heading.textContent));
}
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const theme = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.dataset.theme = theme === "dark" ? "light" : "dark";
});

"use strict";

// pretty indents JSON and leaves every number as it was sent: above 2^53 JavaScript would round it. Browsers that can't
// tell what was sent show it as it came, and so does everything that is no JSON object.
function pretty(text) {
  if (!JSON.rawJSON) return text;
  try {
    const exact = JSON.parse(text, (_, value, { source }) => typeof value === "number" ? JSON.rawJSON(source) : value);
    return JSON.stringify(exact, null, 2);
  } catch {
    return text;
  }
}

// exactBodies shows the body of an answer without changing its numbers, which Swagger UI by itself does.
const exactBodies = (system) => ({
  components: {
    responseBody({ content, getComponent }) {
      const h = system.React.createElement;
      const text = pretty(String(content));
      return h("div", null, h("h5", null, "Response body"),
        h(getComponent("HighlightCode", true), { language: "json", canCopy: true }, text));
    },
  },
});

// The page is dark where the dashboard is: by choice, or as the system is.
const system = matchMedia("(prefers-color-scheme: dark)");
function shade() {
  let chosen = "system";
  try {
    chosen = localStorage.getItem("firn.theme") ?? "system";
  } catch {
    // nothing can be stored here
  }
  document.documentElement.classList.toggle("dark", chosen === "dark" || (chosen !== "light" && system.matches));
}
system.addEventListener("change", shade);
shade();

// Who is logged in to the dashboard in this tab is so here, too.
const token = sessionStorage.getItem("firn.token");

window.addEventListener("load", () => {
  const page = SwaggerUIBundle({
    onComplete: () => token && page.preauthorizeApiKey("bearer", token),
    url: new URL("../openapi.json", location).href,
    dom_id: "#page",
    plugins: [exactBodies],
    validatorUrl: null, // it would show the document to another site
    deepLinking: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    queryConfigEnabled: false,
  });
});

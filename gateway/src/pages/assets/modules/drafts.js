// Discards the draft once its text is saved, as the toast of the next page shows: the file's page, or that of what was
// asked again (?after). After an expired session the next page is the sign-in, and the draft is kept.
const sent = sessionStorage.getItem("cairn-sent");
const place = sent?.split(":")[1];
if (sent && location.pathname.startsWith("/sign-in")) sessionStorage.removeItem("cairn-sent");
const follows = location.pathname === `/file/${place}` || new URLSearchParams(location.search).has("after");
if (sent && follows && document.querySelector(".toast")) {
  sessionStorage.removeItem(sent);
  sessionStorage.removeItem("cairn-sent");
}

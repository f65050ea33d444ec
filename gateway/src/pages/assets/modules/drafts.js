// What was saved is no draft any more: the page that follows, with its toast, says that it was: the file's, or that of what
// is asked again (?after). A session that had ended leads to the sign-in instead, and the draft stays.
const sent = sessionStorage.getItem("cairn-sent");
const place = sent?.split(":")[1];
if (sent && location.pathname.startsWith("/sign-in")) sessionStorage.removeItem("cairn-sent");
const follows = location.pathname === `/file/${place}` || new URLSearchParams(location.search).has("after");
if (sent && follows && document.querySelector(".toast")) {
  sessionStorage.removeItem(sent);
  sessionStorage.removeItem("cairn-sent");
}

// What was saved is no draft any more: the file's page that follows, with its toast, says that it was. A session that had
// ended leads to the sign-in instead, and the draft stays.
const sent = sessionStorage.getItem("cairn-sent");
const place = sent?.split(":")[1];
if (sent && location.pathname.startsWith("/sign-in")) sessionStorage.removeItem("cairn-sent");
if (sent && location.pathname === `/file/${place}` && document.querySelector(".toast")) {
  sessionStorage.removeItem(sent);
  sessionStorage.removeItem("cairn-sent");
}

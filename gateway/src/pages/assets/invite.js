// The secret is in the URL fragment, which no server sees: moves it into the form, and out of the URL.
const secret = location.hash.slice(1);
const field = document.getElementById("secret");
if (secret && field) {
  history.replaceState(null, "", location.pathname);
  field.value = secret;
  field.form.submit();
}

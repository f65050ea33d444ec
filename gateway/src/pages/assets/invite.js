// The secret of a link stands behind the "#", which no server sees: it goes into the form, and out of the address.
const secret = location.hash.slice(1);
const field = document.getElementById("secret");
if (secret && field) {
  history.replaceState(null, "", location.pathname);
  field.value = secret;
  field.form.submit();
}

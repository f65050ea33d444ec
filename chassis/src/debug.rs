//! `Debug` of types that hold secrets, or what has no `Debug`.

/// Implements `Debug` for a type: its name, and of its fields those that are named.
///
/// ```
/// struct Account {
///     email: String,
///     password: String,
/// }
///
/// cairn_chassis::debug_fields!(Account { email });
///
/// let account = Account { email: "a@b.example".to_owned(), password: "secret".to_owned() };
/// assert_eq!(format!("{account:?}"), r#"Account { email: "a@b.example", .. }"#);
/// assert_eq!(account.password, "secret");
/// ```
///
/// It lists what is shown. A derive would list what is hidden, so that a secret that is added and not marked would get
/// into the log.
#[macro_export]
macro_rules! debug_fields {
    ($type:ident $({ $($field:ident),+ })?) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter
                    .debug_struct(stringify!($type))
                    $($(.field(stringify!($field), &self.$field))+)?
                    .finish_non_exhaustive()
            }
        }
    };
}

//! Enums with a stored spelling, defined in one place.

/// Declares an enum with a stored name for each variant. The names must not change: databases contain them and programs
/// read them. An unknown name in a database (written by a newer nmem or by hand) is read as the default, which is the
/// most conservative value; in JSON it is an error.
macro_rules! spelled {
    ($(#[$doc:meta])* $name:ident, default $default:ident { $($(#[$about:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$about])* $variant),* }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// Returns the variant's name in the database and in output.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            /// Finds a variant by its name.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($word => Some($name::$variant),)* _ => None }
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name::$default
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> $name {
                $name::from_name(name).unwrap_or_default()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                let name = <std::borrow::Cow<str>>::deserialize(from)?;
                $name::from_name(&name).ok_or_else(|| serde::de::Error::custom(format!("`{name}` is not a {}", stringify!($name))))
            }
        }
    };
}

pub(crate) use spelled;

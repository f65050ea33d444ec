//! What the fuzz targets share. How to run one, its own documentation says.

pub mod doors;
pub mod files;
pub mod pack;
pub mod parts;
pub mod requests;
pub mod services;

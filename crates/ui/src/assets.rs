//! Scripts and styles: part of the program, named by their digest, so that browsers may cache them for ever.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use kelos_front::fault::plain;

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

struct Asset {
    name: &'static str,
    media: &'static str,
    text: &'static str,
}

const ASSETS: &[Asset] = &[
    Asset { name: "act.js", media: JS, text: include_str!("assets/act.js") },
    Asset { name: "ansi.css", media: CSS, text: include_str!("assets/ansi.css") },
    Asset { name: "board.css", media: CSS, text: include_str!("assets/board.css") },
    Asset { name: "board.js", media: JS, text: include_str!("assets/board.js") },
    Asset { name: "calendar.css", media: CSS, text: include_str!("assets/calendar.css") },
    Asset { name: "flow.css", media: CSS, text: include_str!("assets/flow.css") },
    Asset { name: "focus.css", media: CSS, text: include_str!("assets/focus.css") },
    Asset { name: "graph.css", media: CSS, text: include_str!("assets/graph.css") },
    Asset { name: "graph-file.css", media: CSS, text: include_str!("assets/graph-file.css") },
    Asset { name: "graph.js", media: JS, text: include_str!("assets/graph.js") },
    Asset { name: "groups.css", media: CSS, text: include_str!("assets/groups.css") },
    Asset { name: "groups.js", media: JS, text: include_str!("assets/groups.js") },
    Asset { name: "kelos.css", media: CSS, text: include_str!("assets/kelos.css") },
    Asset { name: "pages.css", media: CSS, text: include_str!("assets/pages.css") },
    Asset { name: "live.js", media: JS, text: include_str!("assets/live.js") },
    Asset { name: "log.js", media: JS, text: include_str!("assets/log.js") },
    Asset { name: "timeline.css", media: CSS, text: include_str!("assets/timeline.css") },
    Asset { name: "timeline.js", media: JS, text: include_str!("assets/timeline.js") },
    Asset { name: "page.js", media: JS, text: include_str!("assets/page.js") },
];

/// The digest of all assets: a change to any of them gives all of them new names.
const DIGEST: u64 = digest();

/// FNV-1a, which can be had while compiling.
const fn digest() -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325_u64;
    let mut asset = 0;
    while asset < ASSETS.len() {
        let bytes = ASSETS[asset].text.as_bytes();
        let mut byte = 0;
        while byte < bytes.len() {
            digest = (digest ^ bytes[byte] as u64).wrapping_mul(0x0100_0000_01b3);
            byte += 1;
        }
        asset += 1;
    }
    digest
}

/// The address of an asset.
pub(super) fn href(name: &str) -> String {
    format!("/ui/assets/{DIGEST:016x}/{name}")
}

/// The text of an asset, for a file that needs no server.
pub(super) fn text(name: &str) -> &'static str {
    ASSETS.iter().find(|asset| asset.name == name).map_or("", |asset| asset.text)
}

pub(super) async fn serve(Path((hash, name)): Path<(String, String)>) -> Response {
    let found = ASSETS.iter().find(|asset| asset.name == name && hash == format!("{DIGEST:016x}"));
    match found {
        Some(asset) => {
            let kept = "public, max-age=31536000, immutable";
            ([(header::CONTENT_TYPE, asset.media), (header::CACHE_CONTROL, kept)], asset.text).into_response()
        }
        None => plain::not_found(format!("There is no file {name} of this version")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        for asset in ASSETS {
            let foreign = asset.text.replace("http://www.w3.org/", "");
            assert!(!foreign.contains("http://") && !foreign.contains("https://"), "{}", asset.name);
        }
    }
}

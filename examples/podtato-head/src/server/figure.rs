//! Draws the parts. All of them draw on the same canvas, so that the page lays one over the other.

use crate::part::Part;

/// The width and the height of the canvas.
pub(crate) const CANVAS: (u32, u32) = (600, 640);
/// How many looks a part has.
const LOOKS: u32 = 3;

/// The picture of a part at a version, as SVG. Versions whose first numbers differ look different.
pub fn draw(part: Part, version: &str) -> String {
    let (width, height) = CANVAS;
    let look = look(version);
    let shapes = match part {
        Part::Hat => hat(look).to_owned(),
        Part::LeftArm => arm(look).to_owned(),
        Part::RightArm => mirrored(arm((look + 1) % LOOKS)),
        Part::LeftLeg => leg(look).to_owned(),
        Part::RightLeg => mirrored(leg(look)),
        Part::Entry => body(look),
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         stroke-linecap=\"round\" stroke-linejoin=\"round\">{shapes}</svg>\n"
    )
}

/// The look of a version: its first number, or what its letters come to.
fn look(version: &str) -> u32 {
    let digits = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    let digits = digits.split(|c: char| !c.is_ascii_digit()).next();
    let number = digits.and_then(|digits| digits.parse::<u32>().ok());
    let letters = || {
        version
            .bytes()
            .fold(0u32, |sum, byte| sum.wrapping_add(u32::from(byte)))
    };
    number.unwrap_or_else(letters).wrapping_add(LOOKS - 1) % LOOKS
}

fn mirrored(shapes: &str) -> String {
    let width = CANVAS.0;
    format!("<g transform=\"translate({width} 0) scale(-1 1)\">{shapes}</g>")
}

/// The body: the same potato with another smile, in a riper colour.
fn body(look: u32) -> String {
    let (light, dark, edge) = match look {
        0 => ("#f2cf8d", "#d39b4f", "#8a5a24"),
        1 => ("#f4c6a0", "#d58a58", "#8b4a25"),
        _ => ("#f5e0a3", "#d6ae4e", "#85651c"),
    };
    let mouth = match look {
        0 => {
            "<path d=\"M252 372 Q300 418 348 372\" fill=\"none\" stroke=\"#5a2d0c\" stroke-width=\"9\"/>"
        }
        1 => {
            "<path d=\"M246 366 Q300 376 354 366 Q346 430 300 430 Q254 430 246 366Z\" fill=\"#6b1f1a\" stroke=\"#5a2d0c\" \
              stroke-width=\"6\"/><path d=\"M268 414 Q300 392 332 414 Q318 430 300 430 Q282 430 268 414Z\" fill=\"#e8736a\"/>"
        }
        _ => {
            "<path d=\"M256 378 Q306 410 350 362\" fill=\"none\" stroke=\"#5a2d0c\" stroke-width=\"9\"/>\
              <path d=\"M344 356 q10 4 12 14\" fill=\"none\" stroke=\"#5a2d0c\" stroke-width=\"6\"/>"
        }
    };
    format!(
        "<defs><radialGradient id=\"skin\" cx=\"0.38\" cy=\"0.3\" r=\"0.85\"><stop offset=\"0\" stop-color=\"{light}\"/>\
         <stop offset=\"1\" stop-color=\"{dark}\"/></radialGradient></defs>\
         <path d=\"M296 150 C382 146 432 212 436 300 C442 402 404 506 306 512 C206 518 160 420 164 318 C168 222 212 154 296 150Z\" \
         fill=\"url(#skin)\" stroke=\"{edge}\" stroke-width=\"7\"/>\
         <g fill=\"{edge}\" opacity=\"0.35\"><ellipse cx=\"214\" cy=\"420\" rx=\"9\" ry=\"6\"/><ellipse cx=\"392\" cy=\"402\" \
         rx=\"11\" ry=\"7\"/><ellipse cx=\"346\" cy=\"470\" rx=\"8\" ry=\"5\"/><ellipse cx=\"204\" cy=\"266\" rx=\"7\" ry=\"5\"/>\
         <ellipse cx=\"262\" cy=\"476\" rx=\"6\" ry=\"4\"/></g>\
         <g fill=\"#fff\" stroke=\"{edge}\" stroke-width=\"5\"><ellipse cx=\"256\" cy=\"294\" rx=\"31\" ry=\"36\"/>\
         <ellipse cx=\"346\" cy=\"294\" rx=\"31\" ry=\"36\"/></g>\
         <g fill=\"#2b1a0c\"><circle cx=\"263\" cy=\"300\" r=\"15\"/><circle cx=\"339\" cy=\"300\" r=\"15\"/></g>\
         <g fill=\"#fff\"><circle cx=\"268\" cy=\"293\" r=\"5\"/><circle cx=\"344\" cy=\"293\" r=\"5\"/></g>\
         <g fill=\"#e8866a\" opacity=\"0.45\"><ellipse cx=\"214\" cy=\"346\" rx=\"23\" ry=\"14\"/><ellipse cx=\"386\" cy=\"346\" \
         rx=\"23\" ry=\"14\"/></g>{mouth}"
    )
}

fn hat(look: u32) -> &'static str {
    match look {
        // A top hat.
        0 => {
            "<g stroke=\"#1c2230\" stroke-width=\"6\"><path d=\"M222 168 L212 48 Q300 28 388 48 L378 168Z\" fill=\"#343d52\"/>\
              <path d=\"M219 132 L222 168 L378 168 L381 132 Q300 148 219 132Z\" fill=\"#d1495b\"/>\
              <path d=\"M160 176 Q300 142 440 176 Q300 214 160 176Z\" fill=\"#343d52\"/></g>\
              <path d=\"M236 66 L243 118\" stroke=\"#5d6985\" stroke-width=\"8\"/>"
        }
        // A knitted cap.
        1 => {
            "<g stroke=\"#7c2230\" stroke-width=\"6\"><path d=\"M196 182 Q204 66 300 62 Q396 66 404 182Z\" fill=\"#e05263\"/>\
              <path d=\"M182 172 Q300 138 418 172 L414 206 Q300 172 186 206Z\" fill=\"#fff4e6\"/></g>\
              <g stroke=\"#c23b4c\" stroke-width=\"5\" fill=\"none\"><path d=\"M250 80 Q236 118 238 152\"/><path d=\"M300 66 V146\"/>\
              <path d=\"M350 80 Q364 118 362 152\"/></g><circle cx=\"300\" cy=\"50\" r=\"30\" fill=\"#fff4e6\" stroke=\"#d8c3a5\" \
              stroke-width=\"5\"/><g fill=\"#ead9bf\"><circle cx=\"290\" cy=\"42\" r=\"5\"/><circle cx=\"309\" cy=\"52\" r=\"5\"/>\
              <circle cx=\"296\" cy=\"62\" r=\"4\"/></g>"
        }
        // The hat of a wizard.
        _ => {
            "<g stroke=\"#2a1f5c\" stroke-width=\"6\"><path d=\"M206 176 Q262 116 282 20 Q318 4 346 30 Q326 36 322 54 Q348 128 394 176 \
              Q300 202 206 176Z\" fill=\"#5b4bb7\"/><path d=\"M150 184 Q300 142 450 184 Q300 226 150 184Z\" fill=\"#4a3ba3\"/></g>\
              <g fill=\"#ffd166\"><path d=\"M286 92 l6 13 14 2 -10 10 2 14 -12 -7 -12 7 2 -14 -10 -10 14 -2z\"/>\
              <path d=\"M334 134 l4 9 10 1 -7 7 2 10 -9 -5 -9 5 2 -10 -7 -7 10 -1z\"/><circle cx=\"262\" cy=\"148\" r=\"5\"/>\
              <circle cx=\"306\" cy=\"60\" r=\"4\"/></g>"
        }
    }
}

/// The left arm; the right one is its mirror image.
fn arm(look: u32) -> &'static str {
    match look {
        // Waves.
        0 => {
            "<path d=\"M180 330 Q112 308 92 214\" fill=\"none\" stroke=\"#8a5a24\" stroke-width=\"30\"/>\
              <path d=\"M180 330 Q112 308 92 214\" fill=\"none\" stroke=\"#dba65c\" stroke-width=\"18\"/>\
              <g fill=\"#fff\" stroke=\"#6d4a1f\" stroke-width=\"5\"><path d=\"M62 202 Q40 150 54 142 Q64 140 74 178 Q76 124 90 124 \
              Q102 126 98 176 Q112 132 124 140 Q132 150 114 190 Q134 180 138 192 Q136 206 108 226 Q78 236 62 202Z\"/></g>"
        }
        // Rests on the hip.
        1 => {
            "<path d=\"M178 332 Q86 336 92 402 Q102 440 174 424\" fill=\"none\" stroke=\"#8a5a24\" stroke-width=\"30\"/>\
              <path d=\"M178 332 Q86 336 92 402 Q102 440 174 424\" fill=\"none\" stroke=\"#dba65c\" stroke-width=\"18\"/>\
              <path d=\"M160 402 Q196 394 206 418 Q208 444 172 448 Q146 440 160 402Z\" fill=\"#fff\" stroke=\"#6d4a1f\" \
              stroke-width=\"5\"/>"
        }
        // Holds a balloon.
        _ => {
            "<path d=\"M84 256 Q96 180 76 130\" fill=\"none\" stroke=\"#7a7f8c\" stroke-width=\"4\"/>\
              <ellipse cx=\"74\" cy=\"78\" rx=\"42\" ry=\"52\" fill=\"#2a9d8f\" stroke=\"#1b6f66\" stroke-width=\"5\"/>\
              <path d=\"M68 128 L82 128 L75 138Z\" fill=\"#1b6f66\"/><ellipse cx=\"60\" cy=\"60\" rx=\"9\" ry=\"16\" fill=\"#fff\" \
              opacity=\"0.45\" transform=\"rotate(20 60 60)\"/>\
              <path d=\"M180 340 Q124 330 88 270\" fill=\"none\" stroke=\"#8a5a24\" stroke-width=\"30\"/>\
              <path d=\"M180 340 Q124 330 88 270\" fill=\"none\" stroke=\"#dba65c\" stroke-width=\"18\"/>\
              <circle cx=\"84\" cy=\"262\" r=\"26\" fill=\"#fff\" stroke=\"#6d4a1f\" stroke-width=\"5\"/>\
              <path d=\"M66 256 H100 M68 268 H100\" stroke=\"#6d4a1f\" stroke-width=\"4\"/>"
        }
    }
}

/// The left leg; the right one is its mirror image.
fn leg(look: u32) -> &'static str {
    match look {
        // Sneakers.
        0 => {
            "<path d=\"M252 488 V566\" stroke=\"#8a5a24\" stroke-width=\"34\"/><path d=\"M252 488 V566\" stroke=\"#dba65c\" \
              stroke-width=\"22\"/><path d=\"M278 556 V608 H170 Q168 580 204 574 Q226 568 232 552Z\" fill=\"#3a86c8\" \
              stroke=\"#1f4f7d\" stroke-width=\"5\"/><path d=\"M168 604 H280 V618 H168Z\" fill=\"#fff\" stroke=\"#1f4f7d\" \
              stroke-width=\"4\"/><path d=\"M216 578 l14 12 M230 568 l14 12\" stroke=\"#fff\" stroke-width=\"5\"/>"
        }
        // Rubber boots.
        1 => {
            "<path d=\"M252 488 V550\" stroke=\"#8a5a24\" stroke-width=\"34\"/><path d=\"M252 488 V550\" stroke=\"#dba65c\" \
              stroke-width=\"22\"/><path d=\"M226 530 H280 V612 H172 Q172 586 208 580 Q226 576 226 558Z\" fill=\"#ffb703\" \
              stroke=\"#9c6b00\" stroke-width=\"5\"/><path d=\"M222 526 H284 V544 H222Z\" fill=\"#fb8500\" stroke=\"#9c6b00\" \
              stroke-width=\"4\"/><path d=\"M168 606 H284 V618 H168Z\" fill=\"#7a4a00\"/>"
        }
        // Striped stockings and pointed shoes.
        _ => {
            "<path d=\"M252 488 V576\" stroke=\"#2a1f5c\" stroke-width=\"36\"/><path d=\"M252 488 V576\" stroke=\"#fff\" \
              stroke-width=\"24\"/><path d=\"M252 500 V580\" stroke=\"#5b4bb7\" stroke-width=\"24\" stroke-linecap=\"butt\" \
              stroke-dasharray=\"12 12\"/><path d=\"M280 566 V612 H186 Q146 610 150 580 Q152 566 164 572 Q160 588 192 584 \
              Q220 580 228 562Z\" fill=\"#5b4bb7\" stroke=\"#2a1f5c\" stroke-width=\"5\"/><circle cx=\"156\" cy=\"570\" r=\"8\" \
              fill=\"#ffd166\" stroke=\"#9c6b00\" stroke-width=\"3\"/>"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_looks_different_at_the_next_version() {
        for part in Part::ALL {
            let pictures = ["1", "v2.0", "3-rc"].map(|version| draw(part, version));
            assert_ne!(pictures[0], pictures[1], "{part}");
            assert_ne!(pictures[1], pictures[2], "{part}");
            assert_ne!(pictures[0], pictures[2], "{part}");
            assert_eq!(pictures[0], draw(part, "1.7"), "{part}");
        }
    }

    #[test]
    fn any_version_has_a_look() {
        for version in ["", "latest", "0", "99999999999999999999", "é"] {
            assert!(look(version) < LOOKS, "{version}");
        }
    }
}

use super::*;

fn file(pages: &[(u32, [u8; uf2::PAGE_BYTES])]) -> Vec<u8> {
    uf2::blocks(pages).flatten().collect()
}

fn firmware() -> Vec<u8> {
    let page = |sector: map::Run| {
        (uf2::RP2040_FLASH + sector.offset(), [sector.first as u8; uf2::PAGE_BYTES])
    };
    file(&[page(map::LOADER), page(map::SLOTS[0])])
}

fn pages(file: &[u8]) -> Vec<Block> {
    let (blocks, _) = file.as_chunks::<{ uf2::BLOCK_BYTES }>();
    blocks.iter().map(|block| Block::from_bytes(block).unwrap()).collect()
}

#[test]
fn settings_are_put_into_their_sector_in_order_and_replaced_when_it_is_done_again() {
    let once = with_settings(&firmware(), "name=attic\n").unwrap();
    let again = with_settings(&once, "name=cellar\n").unwrap();
    let blocks = pages(&again);
    assert_eq!(blocks.len(), 2 + 16);
    assert!(blocks.is_sorted_by(|one, next| one.address < next.address));
    for (number, block) in blocks.iter().enumerate() {
        assert_eq!((block.number, block.count), (number as u32, 18));
    }
    let sector = &blocks[1..17];
    assert_eq!(sector[0].address, uf2::RP2040_FLASH + map::SETTINGS.offset());
    assert!(sector[0].page.starts_with(b"name=cellar\n\xFF"));
    assert!(sector[1..].iter().all(|block| block.page == [ERASED; uf2::PAGE_BYTES]));
}

#[test]
fn file_that_is_no_firmware_is_refused_with_the_reason() {
    let refused = |file: &[u8]| format!("{:#}", with_settings(file, "").unwrap_err());
    assert!(refused(b"").contains("whole file of UF2"));
    assert!(refused(&firmware()[..700]).contains("whole file of UF2"));
    assert!(refused(&[0; 512]).contains("not a block of UF2"));
    let loader = file(&[(uf2::RP2040_FLASH, [0; uf2::PAGE_BYTES])]);
    assert!(refused(&loader).contains("no firmware of Tenure"));
    let long = "x".repeat(map::SETTINGS.bytes() as usize);
    assert!(with_settings(&firmware(), &long).unwrap_err().to_string().contains("longer"));
}

#[test]
fn drive_is_found_by_what_it_says_of_itself_and_two_are_not_chosen_between() {
    let root = tempfile::tempdir().unwrap();
    let mounts = [root.path().to_path_buf()];
    assert!(found(&mounts).unwrap_err().to_string().contains("BOOTSEL"));
    let drive = |name: &str, board: &str| {
        let folder = root.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(DRIVE_MARK), format!("UF2 Bootloader v3.0\r\n{board}\r\n")).unwrap();
        folder
    };
    let other = drive("user/FEATHER", "Board-ID: nRF52840");
    assert!(checked(&other).unwrap_err().to_string().contains("no drive of a Pico"));
    let pico = drive("user/RPI-RP2", PICO_MARK);
    assert_eq!(found(&mounts).unwrap(), pico);
    drive("RPI-RP2", PICO_MARK);
    assert!(found(&mounts).unwrap_err().to_string().contains("two boards"));
}

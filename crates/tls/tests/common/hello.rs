//! Hello messages taken apart, to be put together otherwise.

/// The records in `bytes`, each with its header.
pub(crate) fn records(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut found, mut rest) = (Vec::new(), bytes);
    while let [_, _, _, high, low, ..] = rest {
        let (record, more) = rest.split_at(5 + usize::from(u16::from_be_bytes([*high, *low])));
        found.push(record);
        rest = more;
    }
    found
}

/// An extension: its number and its content.
pub(crate) type Extension = (u16, Vec<u8>);

/// A `ClientHello` in its parts.
#[derive(Clone)]
pub(crate) struct Hello {
    /// Version and random.
    pub(crate) head: Vec<u8>,
    pub(crate) session: Vec<u8>,
    pub(crate) suites: Vec<u8>,
    pub(crate) compressions: Vec<u8>,
    pub(crate) extensions: Vec<Extension>,
}

impl Hello {
    /// The message of the first record.
    pub(crate) fn parse(output: &[u8]) -> Self {
        let body = &records(output)[0][9..];
        let (head, rest) = body.split_at(34);
        let (session, rest) = rest[1..].split_at(usize::from(rest[0]));
        let length = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
        let (suites, rest) = rest[2..].split_at(length);
        let (compressions, rest) = rest[1..].split_at(usize::from(rest[0]));
        Self {
            head: head.to_vec(),
            session: session.to_vec(),
            suites: suites.to_vec(),
            compressions: compressions.to_vec(),
            extensions: extensions(rest),
        }
    }

    /// The record, with all lengths right.
    pub(crate) fn record(&self) -> Vec<u8> {
        let mut body = self.head.clone();
        body.push(self.session.len() as u8);
        body.extend(&self.session);
        body.extend((self.suites.len() as u16).to_be_bytes());
        body.extend(&self.suites);
        body.push(self.compressions.len() as u8);
        body.extend(&self.compressions);
        body.extend(extension_block(&self.extensions));
        record_of(1, &body)
    }

    /// The content of the extension `number`.
    pub(crate) fn get(&self, number: u16) -> Option<&[u8]> {
        get(&self.extensions, number)
    }

    /// Puts `content` into the extension `number`, which is there.
    pub(crate) fn set(&mut self, number: u16, content: &[u8]) {
        set(&mut self.extensions, number, content);
    }

    pub(crate) fn remove(&mut self, number: u16) {
        self.extensions.retain(|(it, _)| *it != number);
    }
}

/// A `ServerHello` or `HelloRetryRequest` in its parts.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) version: u16,
    pub(crate) random: Vec<u8>,
    pub(crate) session: Vec<u8>,
    pub(crate) suite: u16,
    pub(crate) compression: u8,
    pub(crate) extensions: Vec<Extension>,
    /// Bytes behind the extensions.
    pub(crate) more: Vec<u8>,
}

impl Answer {
    /// The message of the first record.
    pub(crate) fn parse(output: &[u8]) -> Self {
        let body = &records(output)[0][9..];
        let (head, rest) = body.split_at(34);
        let (session, rest) = rest[1..].split_at(usize::from(rest[0]));
        Self {
            version: u16::from_be_bytes([head[0], head[1]]),
            random: head[2..].to_vec(),
            session: session.to_vec(),
            suite: u16::from_be_bytes([rest[0], rest[1]]),
            compression: rest[2],
            extensions: extensions(&rest[3..]),
            more: Vec::new(),
        }
    }

    /// The record, with all lengths right.
    pub(crate) fn record(&self) -> Vec<u8> {
        let mut body = self.version.to_be_bytes().to_vec();
        body.extend(&self.random);
        body.push(self.session.len() as u8);
        body.extend(&self.session);
        body.extend(self.suite.to_be_bytes());
        body.push(self.compression);
        body.extend(extension_block(&self.extensions));
        body.extend(&self.more);
        record_of(2, &body)
    }

    /// The content of the extension `number`.
    pub(crate) fn get(&self, number: u16) -> Option<&[u8]> {
        get(&self.extensions, number)
    }

    /// Puts `content` into the extension `number`, which is there.
    pub(crate) fn set(&mut self, number: u16, content: &[u8]) {
        set(&mut self.extensions, number, content);
    }

    pub(crate) fn remove(&mut self, number: u16) {
        self.extensions.retain(|(it, _)| *it != number);
    }
}

fn get(extensions: &[Extension], number: u16) -> Option<&[u8]> {
    extensions.iter().find(|(it, _)| *it == number).map(|(_, content)| &content[..])
}

fn set(extensions: &mut [Extension], number: u16, content: &[u8]) {
    let place = extensions.iter_mut().find(|(it, _)| *it == number).expect("the extension");
    place.1 = content.to_vec();
}

/// The extensions in a block with its length.
fn extensions(block: &[u8]) -> Vec<Extension> {
    let (mut rest, mut extensions) = (&block[2..], Vec::new());
    while let [high, low, long, short, more @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*long, *short]));
        let (content, behind) = more.split_at(length);
        extensions.push((u16::from_be_bytes([*high, *low]), content.to_vec()));
        rest = behind;
    }
    extensions
}

fn extension_block(extensions: &[Extension]) -> Vec<u8> {
    let mut list = Vec::new();
    for (number, content) in extensions {
        list.extend(number.to_be_bytes());
        list.extend((content.len() as u16).to_be_bytes());
        list.extend(content);
    }
    let mut block = (list.len() as u16).to_be_bytes().to_vec();
    block.extend(list);
    block
}

/// A record with a message of `kind` alone.
fn record_of(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, 0];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend(body);
    let mut record = vec![22, 3, 1];
    record.extend((message.len() as u16).to_be_bytes());
    record.extend(message);
    record
}

//! The modules of a crate and what each imports, read from its source.
//!
//! An import is any path through the crate, in a `use`, in code or in a macro's arguments:
//! `crate::`, `super::`, `self::`, or the name of a module in scope. What only tests compile does
//! not count.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use syn::{Attribute, ImplItem, Item, UseTree};

/// A module's path below the crate, such as `["snd", "rtt"]`; the crate itself has none.
pub(crate) type ModulePath = Vec<String>;

/// One path of one file that names something of another module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    /// The file, relative to the crate's `src`.
    pub(crate) file: String,
    pub(crate) line: usize,
    /// The module that the file holds.
    pub(crate) from: ModulePath,
    /// The module that is named.
    pub(crate) to: ModulePath,
    /// As it is written, from the crate on.
    pub(crate) path: String,
}

impl fmt::Display for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "src/{}:{}: crate::{}", self.file, self.line, self.path)
    }
}

/// A crate's modules and imports.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// The crate's own modules by layer, lowest first.
    pub(crate) layers: Vec<Vec<String>>,
    modules: BTreeSet<ModulePath>,
    /// Which module the names are of that the crate exports at its root.
    exported: BTreeMap<String, ModulePath>,
    /// What `lib.rs` declares itself. As in any folder, its own file is none of its modules.
    declared: BTreeSet<String>,
    paths: Vec<Written>,
}

/// A path as it is written in a module, from the crate on.
#[derive(Debug)]
struct Written {
    file: String,
    line: usize,
    from: ModulePath,
    path: Vec<String>,
}

impl Source {
    /// Reads the crate whose `lib.rs` is in `src`; `read` gives the text of a file, if there is
    /// one.
    pub(crate) fn read(src: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Self {
        let mut source = Self::default();
        source.file(read, src, Path::new("lib.rs"), &Vec::new());
        source
    }

    /// Every import of another module, in the order of files.
    pub(crate) fn imports(&self) -> Vec<Import> {
        let mut imports: Vec<_> = self.paths.iter().filter_map(|written| self.resolve(written)).collect();
        imports.sort();
        imports.dedup();
        imports
    }

    fn resolve(&self, written: &Written) -> Option<Import> {
        // A module may have the name of a function that is exported: `crate::run::Outcome`.
        let is_module =
            |name: &String| written.path.len() > 1 && self.modules.contains(std::slice::from_ref(name));
        let first = written.path.first().filter(|name| !is_module(name));
        if first.is_some_and(|name| self.declared.contains(name)) {
            return None;
        }
        let at_root = first.and_then(|name| self.exported.get(name));
        let to = match at_root {
            Some(module) => module.clone(),
            None => self.module_of(&written.path),
        };
        let to_crate = to.is_empty() && !written.path.is_empty();
        assert!(
            !to_crate,
            "src/{}:{}: nothing exports {}",
            written.file,
            written.line,
            written.path.join("::")
        );
        (to != written.from && !to.is_empty()).then(|| Import {
            file: written.file.clone(),
            line: written.line,
            from: written.from.clone(),
            to,
            path: written.path.join("::"),
        })
    }

    /// The longest part of `path` that is a module.
    fn module_of(&self, path: &[String]) -> ModulePath {
        let lengths = (0..=path.len()).rev();
        lengths.map(|len| path[..len].to_vec()).find(|path| self.modules.contains(path)).unwrap_or_default()
    }

    fn file(&mut self, read: &dyn Fn(&Path) -> Option<String>, src: &Path, file: &Path, module: &ModulePath) {
        let text = read(&src.join(file)).unwrap_or_else(|| panic!("no file {}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.modules.insert(module.clone());
        let children: Vec<_> =
            parsed.items.iter().filter_map(outer_module).map(|it| it.ident.to_string()).collect();
        if module.is_empty() {
            self.layers = layers(&parsed.items);
            self.exported = exports(&parsed.items);
            self.declared = parsed.items.iter().filter_map(declared).collect();
        } else {
            let mut found = Vec::new();
            items(&parsed.items, module, &children, &mut found);
            let name = file.to_string_lossy().into_owned();
            self.paths.extend(found.into_iter().map(|(line, path)| Written {
                file: name.clone(),
                line,
                from: module.clone(),
                path,
            }));
        }
        for child in &children {
            let path = [module.as_slice(), std::slice::from_ref(child)].concat();
            let folder: PathBuf = module.iter().collect();
            let candidates = [folder.join(format!("{child}.rs")), folder.join(child).join("mod.rs")];
            let file = candidates.iter().find(|file| read(&src.join(file)).is_some());
            let file = file.unwrap_or_else(|| panic!("no file for the module {}", path.join("::")));
            self.file(read, src, file, &path);
        }
    }
}

/// A module in a file of its own that is not only for tests.
fn outer_module(item: &Item) -> Option<&syn::ItemMod> {
    match item {
        Item::Mod(module) if module.content.is_none() && !is_for_tests(&module.attrs) => Some(module),
        _ => None,
    }
}

/// Modules that stand together, without a line between them, are one layer.
fn layers(items: &[Item]) -> Vec<Vec<String>> {
    let mut layers: Vec<Vec<String>> = Vec::new();
    let mut last = None;
    for module in items.iter().filter_map(outer_module) {
        let tokens = module.to_token_stream();
        let first = tokens.into_iter().next().map(|token| token.span().start().line);
        let name = module.ident.to_string();
        match layers.last_mut() {
            Some(layer) if first == last.map(|line| line + 1) => layer.push(name),
            _ => layers.push(vec![name]),
        }
        last = Some(module.semi.as_ref().expect("a module without a body ends in ;").span.end().line);
    }
    layers
}

/// The names that the crate exports at its root, with their modules.
fn exports(items: &[Item]) -> BTreeMap<String, ModulePath> {
    let mut exports = BTreeMap::new();
    for item in items {
        if let Item::Use(item) = item {
            let mut path = Vec::new();
            export(&item.tree, &mut path, &mut exports);
        }
    }
    exports
}

/// The name of a type, trait, function or constant.
fn declared(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn export(tree: &UseTree, path: &mut Vec<String>, exports: &mut BTreeMap<String, ModulePath>) {
    match tree {
        UseTree::Path(next) => {
            path.push(next.ident.to_string());
            export(&next.tree, path, exports);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| export(tree, path, exports)),
        UseTree::Name(name) => drop(exports.insert(name.ident.to_string(), path.clone())),
        UseTree::Rename(name) => drop(exports.insert(name.rename.to_string(), path.clone())),
        UseTree::Glob(_) => panic!("lib.rs exports {}::*: name what it exports", path.join("::")),
    }
}

/// The paths in the items of `module`, whose modules with a file of their own are `children`.
fn items(items: &[Item], module: &ModulePath, children: &[String], found: &mut Vec<Found>) {
    let scope = Scope { module, children };
    for item in items.iter().filter(|item| !is_for_tests(attributes(item))) {
        match item {
            Item::Mod(inner) => {
                if let Some((_, inner_items)) = &inner.content {
                    let path = [module.as_slice(), &[inner.ident.to_string()]].concat();
                    self::items(inner_items, &path, &[], found);
                }
            }
            Item::Impl(item) => {
                let mut item = item.clone();
                item.items.retain(|item| match item {
                    ImplItem::Fn(item) => !is_for_tests(&item.attrs),
                    ImplItem::Const(item) => !is_for_tests(&item.attrs),
                    _ => true,
                });
                scan(item.to_token_stream(), &scope, found);
            }
            item => scan(item.to_token_stream(), &scope, found),
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// `#[cfg(test)]` or `#[cfg(doctest)]`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test" || name == "doctest")
    })
}

/// A line, and the path that stands there.
type Found = (usize, Vec<String>);

/// Where a path stands.
struct Scope<'a> {
    module: &'a ModulePath,
    /// Modules that a path may begin with.
    children: &'a [String],
}

impl Scope<'_> {
    /// What a path that begins with `name` begins with, from the crate on.
    fn start(&self, name: &str) -> Option<ModulePath> {
        match name {
            "crate" => Some(Vec::new()),
            "self" => Some(self.module.clone()),
            "super" => Some(self.module[..self.module.len() - 1].to_vec()),
            _ if self.children.iter().any(|child| child == name) => {
                Some([self.module.as_slice(), &[name.to_owned()]].concat())
            }
            _ => None,
        }
    }
}

/// Finds the paths in `tokens`, with their lines.
fn scan(tokens: TokenStream, scope: &Scope<'_>, found: &mut Vec<Found>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut at = 0;
    // A name behind `::` goes on with another path, and begins none.
    let mut continues = false;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Group(group) => scan(group.stream(), scope, found),
            TokenTree::Ident(name) if !continues && is_colons(&tokens[at..]) => {
                if let Some(start) = scope.start(&name.to_string()) {
                    at += follow(&tokens[at..], start, found);
                }
            }
            _ => {}
        }
        continues = matches!(token, TokenTree::Punct(punct) if punct.as_char() == ':')
            && at >= 2
            && matches!(&tokens[at - 2], TokenTree::Punct(punct) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint);
    }
}

/// Follows a path that goes on with `tokens`, and says how many of them it took.
fn follow(tokens: &[TokenTree], mut path: Vec<String>, found: &mut Vec<Found>) -> usize {
    let mut at = 0;
    let mut line = 0;
    while is_colons(&tokens[at..]) {
        match tokens.get(at + 2) {
            Some(TokenTree::Ident(name)) if name == "super" => drop(path.pop()),
            Some(TokenTree::Ident(name)) if name == "self" => {}
            Some(TokenTree::Ident(name)) => path.push(name.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                branches(group.stream(), &path, found);
                return at + 3;
            }
            // A glob, or the arguments of a generic type.
            _ => break,
        }
        line = tokens[at + 2].span().start().line;
        at += 3;
    }
    found.push((line, path));
    at
}

/// Follows each of the paths between the braces of a `use`.
fn branches(tokens: TokenStream, path: &[String], found: &mut Vec<Found>) {
    let mut tokens = tokens.into_iter().peekable();
    while tokens.peek().is_some() {
        let branch =
            tokens.by_ref().take_while(|it| !matches!(it, TokenTree::Punct(it) if it.as_char() == ','));
        let branch: Vec<_> = branch.collect();
        let Some(first) = branch.first() else { continue };
        let mut path = path.to_vec();
        if let TokenTree::Ident(name) = first
            && name != "self"
        {
            path.push(name.to_string());
        }
        if is_colons(&branch[1..]) {
            follow(&branch[1..], path, found);
        } else {
            found.push((first.span().start().line, path));
        }
    }
}

fn is_colons(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(a), TokenTree::Punct(b), ..] if a.as_char() == ':' && b.as_char() == ':' && a.spacing() == Spacing::Joint)
}

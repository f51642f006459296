//! Logins, users, roles and permissions.

use super::super::error::{self, Result};
use super::super::lexer::Tok;
use super::super::stmt::{Kind, Permission, PermissionVerb, Principal, Securable};
use super::Parser;

impl Parser<'_> {
    /// A principal's name; `public` is a reserved word.
    fn principal_name(&mut self) -> Result<String> {
        if self.take_kw("public") {
            return Ok("public".into());
        }
        if self.take_kws(&["current_user"]) {
            return Err(error::unsupported("CURRENT_USER as principal").at_line(self.line()));
        }
        self.ident()
    }

    pub(super) fn create_principal(&mut self) -> Result<Kind> {
        let principal = match self.word().as_deref() {
            Some("login") => self.create_login()?,
            Some("user") => self.create_user()?,
            Some("role") => {
                self.advance();
                let name = self.ident()?;
                let owner = if self.take_kw("authorization") { Some(self.ident()?) } else { None };
                Principal::CreateRole { name, owner, server: false }
            }
            Some("server") if self.is_kw_at(1, "role") => {
                self.at += 2;
                let name = self.ident()?;
                let owner = if self.take_kw("authorization") { Some(self.ident()?) } else { None };
                Principal::CreateRole { name, owner, server: true }
            }
            _ => return Err(self.unexpected()),
        };
        Ok(Kind::Principal(Box::new(principal)))
    }

    fn create_login(&mut self) -> Result<Principal> {
        self.advance();
        let name = self.ident()?;
        if self.is_kw("from") {
            return Err(error::unsupported("CREATE LOGIN FROM").at_line(self.line()));
        }
        self.expect_kw("with")?;
        let (password, default_database) = self.login_options()?;
        Ok(Principal::CreateLogin { name, password, default_database })
    }

    /// `PASSWORD = '...' [MUST_CHANGE | HASHED], CHECK_POLICY = OFF, ...`
    fn login_options(&mut self) -> Result<(Option<String>, Option<String>)> {
        let (mut password, mut database) = (None, None);
        loop {
            let option = self.word().ok_or_else(|| self.unexpected())?;
            self.advance();
            self.expect_op("=")?;
            match option.as_str() {
                "password" => {
                    password = Some(self.string()?);
                    if self.is_kw("hashed") {
                        return Err(error::unsupported("PASSWORD HASHED").at_line(self.line()));
                    }
                    self.take_kw("must_change");
                    if self.take_kw("old_password") {
                        self.expect_op("=")?;
                        self.string()?;
                    }
                }
                "default_database" => database = Some(self.ident()?),
                "check_policy" | "check_expiration" | "default_language" | "sid" | "credential" | "old_password" => {
                    self.advance();
                }
                _ => return Err(self.unexpected()),
            }
            if !self.take_op(",") {
                return Ok((password, database));
            }
        }
    }

    fn create_user(&mut self) -> Result<Principal> {
        self.advance();
        let name = self.ident()?;
        let (mut login, mut without_login, mut default_schema) = (None, false, None);
        if self.is_any_kw(&["for", "from"]) {
            self.advance();
            self.expect_kw("login")?;
            login = Some(self.ident()?);
        } else if self.take_kws(&["without", "login"]) {
            without_login = true;
        }
        if self.take_kw("with") {
            self.expect_kw("default_schema")?;
            self.expect_op("=")?;
            default_schema = Some(self.ident()?);
        }
        Ok(Principal::CreateUser { name, login, without_login, default_schema })
    }

    pub(super) fn alter_principal(&mut self) -> Result<Kind> {
        let principal = match self.word().as_deref() {
            Some("login") => self.alter_login()?,
            Some("user") => self.alter_user()?,
            Some("role") => {
                self.advance();
                self.alter_role(false)?
            }
            Some("server") if self.is_kw_at(1, "role") => {
                self.at += 2;
                self.alter_role(true)?
            }
            _ => return Err(self.unexpected()),
        };
        Ok(Kind::Principal(Box::new(principal)))
    }

    fn alter_login(&mut self) -> Result<Principal> {
        self.advance();
        let name = self.ident()?;
        if self.is_any_kw(&["enable", "disable"]) {
            let enable = Some(self.is_kw("enable"));
            self.advance();
            return Ok(Principal::AlterLogin { name, password: None, enable, default_database: None });
        }
        self.expect_kw("with")?;
        let (password, default_database) = self.login_options()?;
        Ok(Principal::AlterLogin { name, password, enable: None, default_database })
    }

    fn alter_user(&mut self) -> Result<Principal> {
        self.advance();
        let name = self.ident()?;
        self.expect_kw("with")?;
        let (mut default_schema, mut new_name, mut login) = (None, None, None);
        loop {
            let option = self.word().ok_or_else(|| self.unexpected())?;
            self.advance();
            self.expect_op("=")?;
            let value = self.ident()?;
            match option.as_str() {
                "default_schema" => default_schema = Some(value),
                "name" => new_name = Some(value),
                "login" => login = Some(value),
                _ => return Err(self.unexpected()),
            }
            if !self.take_op(",") {
                return Ok(Principal::AlterUser { name, default_schema, new_name, login });
            }
        }
    }

    fn alter_role(&mut self, server: bool) -> Result<Principal> {
        let name = self.ident()?;
        let add = self.is_kw("add");
        if !add && !self.is_kw("drop") {
            return Err(error::unsupported("ALTER ROLE WITH NAME").at_line(self.line()));
        }
        self.advance();
        self.expect_kw("member")?;
        let member = self.ident()?;
        Ok(Principal::AlterRole { name, member, add, server })
    }

    pub(super) fn permission(&mut self) -> Result<Kind> {
        let verb = match self.word().as_deref() {
            Some("grant") => PermissionVerb::Grant,
            Some("deny") => PermissionVerb::Deny,
            _ => PermissionVerb::Revoke,
        };
        self.advance();
        if verb == PermissionVerb::Revoke {
            self.take_kws(&["grant", "option", "for"]);
        }
        let permissions = self.list(Self::permission_item)?;
        let on = if self.take_kw("on") { Some(self.securable()?) } else { None };
        if !self.take_kw("to") {
            if verb != PermissionVerb::Revoke {
                return Err(self.unexpected());
            }
            self.expect_kw("from")?;
        }
        let principals = self.list(Self::principal_name)?;
        let with_grant = self.take_kws(&["with", "grant", "option"]);
        let cascade = self.take_kw("cascade");
        if self.take_kw("as") {
            self.ident()?;
        }
        Ok(Kind::Permission(Box::new(Permission { verb, permissions, on, principals, with_grant, cascade })))
    }

    fn permission_item(&mut self) -> Result<(String, Vec<String>)> {
        let mut words = Vec::new();
        while let Tok::Word { text, quoted: false } = self.peek() {
            if ["on", "to", "from"].iter().any(|k| text.eq_ignore_ascii_case(k)) {
                break;
            }
            words.push(text.to_ascii_uppercase());
            self.advance();
        }
        if words.is_empty() {
            return Err(self.unexpected());
        }
        let columns = if self.is_op("(") { self.paren_list(Self::ident)? } else { Vec::new() };
        let mut name = words.join(" ");
        if name == "ALL PRIVILEGES" {
            name = "ALL".into();
        }
        if name == "EXEC" {
            name = "EXECUTE".into();
        }
        Ok((name, columns))
    }

    fn securable(&mut self) -> Result<Securable> {
        let class = if self.is_op_at(1, "::") {
            let word = match self.peek() {
                Tok::Word { text, .. } => text.to_ascii_lowercase(),
                _ => return Err(self.unexpected()),
            };
            self.at += 2;
            word
        } else if self.is_op_at(2, "::") {
            let word = match (self.peek(), &self.token(1).tok) {
                (Tok::Word { text: a, .. }, Tok::Word { text: b, .. }) => format!("{a} {b}").to_ascii_lowercase(),
                _ => return Err(self.unexpected()),
            };
            self.at += 3;
            word
        } else {
            "object".to_owned()
        };
        match class.as_str() {
            "object" => Ok(Securable::Object(self.name()?)),
            "schema" => Ok(Securable::Schema(self.ident()?)),
            "database" => Ok(Securable::DatabaseNamed(self.ident()?)),
            "login" => Ok(Securable::Login(self.ident()?)),
            "user" | "role" => Ok(Securable::Principal(self.ident()?)),
            "type" => Ok(Securable::Type(self.name()?)),
            _ => Err(error::unsupported(&class).at_line(self.line())),
        }
    }
}

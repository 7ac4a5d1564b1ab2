class User < ApplicationRecord
  has_secure_password

  has_many :jobs

  before_validation { self.email = email.to_s.downcase }

  validates :name, presence: true
  validates :email, format: { with: /\A[^@\s]+@[^@\s]+\z/ }, uniqueness: true
  validates :password, length: { minimum: 8 }, allow_nil: true
  validates :role, inclusion: { in: %w[seeker employer] }
end

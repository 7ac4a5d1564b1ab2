# An employer or a seeker. Users come from the account service, which also gives them their tokens.
class User < ApplicationRecord
  has_many :jobs
  has_many :job_applications

  validates :name, presence: true
  validates :role, inclusion: { in: %w[seeker employer] }
end
